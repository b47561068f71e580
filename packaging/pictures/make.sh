#!/bin/sh
# Makes the pictures of the README: real sessions in a throw-away store, shown by
# the program in a real terminal of tmux, and what that terminal shows as SVG.
# Usage: make.sh BUILD-DIRECTORY OUTPUT-DIRECTORY. Needs tmux, flock and python3.
set -eu
bin=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
top=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
mux() { TMUX='' tmux -S "$dir/tmux" "$@"; }
trap 'mux kill-server 2>/dev/null || :; exec 3>&-; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

export TONGS_AGENTS_STATE_DIR="$dir/state" PATH="$bin:$PATH" TERM=xterm-256color LC_ALL=C.UTF-8
unset NO_COLOR COLUMNS TONGS_AGENTS_IGNORE 2>/dev/null || :
now=$(date +%s)

session() { # harness session status seconds-ago directory detail
    tongs-agents notify --harness "$1" --session "$2" --status "$3" --ts $((now - $4)) \
        --cwd "/src/$5" --detail "$6"
}
session codex 01 running 65 harbour 'using apply_patch'
session opencode 02 running 245 atlas 'using bash'
session claude 03 waiting 130 lantern 'permission needed: Bash(make deploy)'
session gemini 04 waiting 1870 almanac 'question: which of the two layouts?'
session claude 05 idle 545 notes 'All 214 tests pass. The parser now keeps comments.'
session copilot 06 error 3670 lantern 'rate limited'
session pi 07 idle 75 sextant 'Renamed the module; see the summary above.'
session codex 08 running 1265 barometer 'using shell'

# The pictures show these sessions and no others: nobody looks for more meanwhile.
exec 3>"$dir/state/sessions/.fleet-maintenance.lock"
flock 3
(umask 077 && echo "$now" >"$dir/state/sessions/.fleet-maintenance.stamp")

# Waits until the terminal shows a text.
shows() {
    tries=0
    until mux capture-pane -p | grep -qF -- "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || { echo "the terminal does not show '$1'" >&2; exit 1; }
        sleep 0.02
    done
}

picture() { # file title
    mux capture-pane -p -e | python3 "$top/svg.py" "$2" >"$out/$1.new"
    mv "$out/$1.new" "$out/$1"
}

mux -f /dev/null new-session -d -x 92 -y 10 \
    "tongs-agents status; exec sleep 60"
shows 'ID'
shows 'sextant'
picture status.svg 'tongs-agents status'
mux respawn-pane -k 'tongs-agents monitor --notify none'
mux resize-window -x 92 -y 21
shows 'q quit'
mux send-keys d
shows 'session_id'
picture monitor.svg 'tongs-agents monitor'
