#!/bin/sh
# Shows the main job on real input in a throw-away state directory: payloads as
# harnesses send them, through the installed names, then what a person and what
# a script sees. Usage: demo.sh BUILD-DIRECTORY
set -eu
bin=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
payloads=$top/tests/fixtures/payloads
dir=$(mktemp -d)
trap 'exec 3>&- 4>&-; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

export TONGS_AGENTS_STATE_DIR="$dir/state"
unset TONGS_AGENTS_IGNORE TONGS_AGENTS_DETAIL 2>/dev/null || :
export PATH="$bin:$PATH"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

# A stand-in for a harness: a shell under its name that does what it is told
# and then waits, as an agent does. Its hooks are its children.
agent() {
    name=$1
    script=$2
    mkdir -p "$dir/bin"
    cp /bin/sh "$dir/bin/$name"
    mkfifo "$dir/$name.hold"
    { "$dir/bin/$name" -c "$script"'
        echo done >&2
        read -r line' <"$dir/$name.hold" 2>"$dir/$name.done"; } &
    pid=$!
}

hook() { # harness event payload-file
    printf "sh -c 'tongs-hook %s %s <%s/%s; :'\n" "$1" "$2" "$payloads" "$3"
}

say '1. Two agents work. At each event their harness runs tongs-hook, which says nothing:'
claude=$(hook claude SessionStart claude/SessionStart-startup.json
    hook claude UserPromptSubmit claude/UserPromptSubmit.json
    hook claude PermissionRequest claude/PermissionRequest-subagent.json)
codex=$(hook codex SessionStart codex/SessionStart-clear.json
    hook codex UserPromptSubmit codex/UserPromptSubmit.json
    hook codex PreToolUse codex/PreToolUse-apply_patch.json)
printf '%s\n%s\n' "$claude" "$codex" | sed -n "s/^sh -c '\(.*\); :'$/   \1/p" | sed "s|$payloads/||"
agent claude "$claude"
claude_pid=$pid
agent codex "$codex"
# Each agent lives until its end of the FIFO is closed.
exec 3>"$dir/claude.hold" 4>"$dir/codex.hold"
for name in claude codex; do
    until grep -q "done" "$dir/$name.done"; do sleep 0.02; done
done

say '2. A build reports by itself:'
echo '   tongs-agents notify --harness other --session nightly --status running --detail "make all"'
tongs-agents notify --harness other --session nightly --cwd /src/nightly --status running --detail 'make all'
tongs-agents cleanup --if-due

say '3. Who works, who waits for you: tongs-agents status'
tongs-agents status --harness claude --harness codex --harness other --status waiting --status running

say '4. In one line, for a prompt: tongs-agents status --line plain'
tongs-agents status --line plain

say '5. For scripts: tongs-agents status --json --attention'
tongs-agents status --json --attention

say '6. An agent ends without a word. The maintainer sees that its process is gone:'
exec 3>&-
wait "$claude_pid" || :
echo '   tongs-agents cleanup'
tongs-agents cleanup
tongs-agents status --harness claude --harness codex --harness other --status waiting --status running
