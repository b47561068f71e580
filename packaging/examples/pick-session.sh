#!/bin/sh
# Lists the sessions of coding agents in fzf and goes to the one that is chosen.
# tmux.conf beside this file opens it in a popup. Needs fzf.
set -eu

say() {
    printf 'pick-session: %s\n' "$1" >&2
    exit "$2"
}

command -v fzf >/dev/null || say 'fzf is not installed' 69

# Escaped: one line a session, no tab within a column, nothing for the terminal.
rows=$(tongs-agents status --sort attention -o short_id,status,harness_id,repo,detail)
[ -n "$rows" ] || say 'no sessions' 1

tab=$(printf '\t')
# The id is not shown and not searched. Nothing chosen is no error.
row=$(printf '%s\n' "$rows" |
    fzf --no-multi --no-ansi --reverse --delimiter="$tab" --with-nth=2.. --tabstop=12 \
        --prompt='go to: ') || case $? in 1 | 130) exit 0 ;; *) exit 1 ;; esac
exec tongs-agents focus "${row%%"$tab"*}"
