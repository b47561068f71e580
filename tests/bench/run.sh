#!/bin/sh
# Measures tongs against what the same work costs otherwise, on Linux. Every
# ratio is of two commands that took turns, started by the same small program
# (drive.c); a time alone says nothing about another machine.
#
#   run.sh BINARY
#
# needs           a C compiler; ps for maintenance, python3 for the screen and the bridge, strace for system calls,
#                 x86-64 for what runs without a C library (bare.h)
# CC              the compiler (default gcc)
# BENCH_N         counted runs of the short commands (default 300)
# REFERENCE_VENV  a Python environment with claude-fleet-monitor 0.9.1 in it
# TMPDIR          where the disk is, for the writers (default /tmp)
#
# A bar that is missed is reported and is no failure: machines are shared. The
# exit status is not 0 when something broke.
set -eu
export LC_ALL=C

binary=${1:?usage: run.sh BINARY}
if ! [ -f "$binary" ] || ! [ -x "$binary" ]; then
    echo "run.sh: '$binary' is no program: run 'make' first" >&2
    exit 64
fi
here=$(cd "$(dirname "$0")" && pwd)
runs=${BENCH_N:-300}
few=$(((runs + 9) / 10))
some=$(((runs + 4) / 5))

# shellcheck source=SCRIPTDIR/common.sh
. "$here/common.sh"
compile sleepers

# --- the programs ------------------------------------------------------------

bare() {
    out=$1 source=$2
    shift 2
    "$cc" -O2 -Wall -Wextra -nostdlib -static -no-pie -ffreestanding -fno-stack-protector \
        "$@" -o "$bin/$out" "$here/$source"
}
bare_runs=
if [ "$(uname -m)" = x86_64 ]; then
    bare_runs=yes
    bare raw raw.c
    bare drain drain.c
else
    skip "all comparisons with bare system calls: they are written for x86-64"
fi

state=$dir/hook
inside() {
    exec env -i HOME="$dir" PATH="$PATH" TONGS_AGENTS_STATE_DIR="$state" FLEET_DIR="$dir/fleet" "$@"
}

# --- the payloads ------------------------------------------------------------

# An event of SIZE bytes whose tool printed source text.
payload() {
    sed 's/[\\"]/\\&/g' "$here"/*.c | awk -v size="$1" -v cwd="$dir/project" '
        { text = text $0 "\\n" }
        END {
            head = "{\"session_id\":\"0b6f2d1c-7a53-4e8e-9c41-5d2f8a7b9e10\",\"transcript_path\":\"" cwd \
                "/log.jsonl\",\"cwd\":\"" cwd "\",\"permission_mode\":\"default\"," \
                "\"hook_event_name\":\"PostToolUse\",\"tool_name\":\"Bash\"," \
                "\"tool_input\":{\"command\":\"cat *.c\",\"description\":\"Show the sources\"}," \
                "\"tool_response\":{\"stdout\":\""
            tail = "\",\"stderr\":\"\",\"interrupted\":false},\"tool_use_id\":\"toolu_01XFDUDYJgAACzvnptvVoYEL\"}"
            left = size - length(head) - length(tail)
            printf "%s", head
            for (; left > length(text); left -= length(text))
                printf "%s", text
            part = substr(text, 1, left)
            # No escape may be cut in two.
            if (match(part, /\\+$/) && RLENGTH % 2)
                part = substr(part, 1, length(part) - 1) "."
            printf "%s%s", part, tail
        }'
}
payload 1024 >"$dir/small"
payload 10485760 >"$dir/large"

# --- the hook ----------------------------------------------------------------

# Two commands a run: what ran just before leaves warm or cold caches behind,
# and so it is the same all along.
set -- "$dir/small" null "$hook" claude PostToolUse
drive time 1 0 -- hook "$@"
cp -Rp "$dir/hook" "$dir/bare"
name() { find "$dir/bare/sessions" -name "$1" -exec basename {} \;; }
if [ -n "$bare_runs" ]; then
    bare floor floor.c -DROOT="\"$dir/bare\"" -DRECORD="\"$(name 'fleet-v1-*')\"" \
        -DRECORD_LOCK="\"$(name '.fleet-v1-*')\"" -DIDENTITY_LOCK="\"$(name '.fleet-identity-*')\""
    timed same "$runs" 10 -- hook "$@" -- floor "$dir/small" null "$bin/floor"
fi
timed shell "$runs" 10 -- hook "$@" -- sh - null /bin/sh -c :

reference=${REFERENCE_VENV:+$REFERENCE_VENV/bin/claude-fleet-hook}
if [ -z "$reference" ]; then
    skip "the reference hook: REFERENCE_VENV does not name an environment that has it"
elif [ ! -x "$reference" ]; then
    skip "the reference hook: it is not in REFERENCE_VENV"
else
    # It makes no record of a tool's event, only of a prompt.
    timed reference "$few" 2 -- hook "$@" -- first "$dir/small" null "$reference" prompt-submit --agent claude \
        -- reference "$dir/small" null "$reference" tool-use --agent claude
    rewritten=$(cat "$dir"/fleet/*.json 2>/dev/null | sed -n 's/.*"arrival_sequence": *\([0-9]*\).*/\1/p')
    if [ "${rewritten:-0}" -lt "$few" ]; then
        grep -v '^reference-' "$dir/times" >"$dir/kept"
        mv "$dir/kept" "$dir/times"
        skip "the reference hook: it runs but writes no record"
    fi
fi

[ -z "$bare_runs" ] ||
    timed large "$some" 3 -- hook "$dir/large" null "$hook" claude PostToolUse \
        -- drain "$dir/large" null "$bin/drain"
memory small "$@"
memory large "$dir/large" null "$hook" claude PostToolUse

# The two lists of system calls. strace leaves the hook's ancestors as they are
# when it is told to be the hook's descendant.
calls() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        ! grep -q '^+++ exited' "$1" || break
        sleep 0.1
    done
    # The timer may fire when a traced run is slow.
    sed -n 's/^\([a-z_0-9]*\)(.*/\1/p' "$1" | grep -v '^rt_sigreturn$'
}
if strace=$(command -v strace) && "$strace" -o /dev/null true 2>/dev/null; then
    drive time 1 0 -- hook "$@" \
        -- traced "$dir/small" null "$strace" -D -o "$dir/hook.trace" "$hook" claude PostToolUse
    calls "$dir/hook.trace" >"$dir/hook.calls"
    hook_calls=$(wc -l <"$dir/hook.calls")
    if [ -n "$bare_runs" ]; then
        drive time 1 0 -- traced "$dir/small" null "$strace" -D -o "$dir/floor.trace" "$bin/floor"
        calls "$dir/floor.trace" >"$dir/floor.calls"
        other_calls=$(diff "$dir/hook.calls" "$dir/floor.calls" | grep -c '^[<>]' || :)
    fi
else
    strace=
    skip "system calls: there is no strace that may trace here"
fi

# --- the readers -------------------------------------------------------------

# Records of one live process, with the ids that notify gives them. Their lock
# files are taken away, so that what is compared is the reading of records.
pid=$$
state=$dir/10000
awk 'BEGIN { for (i = 1; i <= 10000; i++) print i }' >"$dir/numbers"
env -i TONGS_AGENTS_STATE_DIR="$state" xargs -P 2 -I @@ "$agents" notify --harness other \
    --session s-@@ --instance i-@@ --status running --pid "$pid" --cwd "$dir/project" \
    --detail 'building the release, 12 of 40 crates' --tool make --event step <"$dir/numbers"
find "$state/sessions" -name '.fleet-*' -exec rm -f {} +
date +%s >"$state/sessions/.fleet-maintenance.stamp"
store() {
    state=$dir/$1
    mkdir -p "$state/sessions"
    find "$dir/10000/sessions" -name '*.json' | head -n "$1" >"$dir/list"
    # shellcheck disable=SC2016 # they are the inner shell's
    xargs sh -c 'd=$0; cp -p "$@" "$d"' "$state/sessions" <"$dir/list"
    cp -p "$dir/10000/sessions/.fleet-maintenance.stamp" "$state/sessions"
}
# All of them are read as records, or nothing below means anything.
counted() {
    TONGS_AGENTS_STATE_DIR=$state "$agents" status --json |
        grep -q "\"total\":$1,.*\"skipped\":0}" || { echo "run.sh: status does not show $1 records" >&2; exit 70; }
}
read_all() {
    what=$1 count=$2 rounds=$3
    counted "$count"
    set -- -- status - null "$agents" status --json -- cat - null /bin/sh -c "cd '$state/sessions' && cat *.json"
    timed "$what-cat" "$rounds" 2 "$@"
    [ -z "$bare_runs" ] || timed "$what-raw" "$rounds" 2 -- status - null "$agents" status --json \
        -- raw - null "$bin/raw" "$state/sessions"
}
store 10
read_all s10 10 "$runs"
store 1000
read_all s1000 1000 "$some"
state=$dir/10000
read_all s10000 10000 "$few"
memory status - null "$agents" status --json
find "$state/sessions" -name '*.json' -exec sed -i 's/"detail":"[^"]*"/"detail":"größte Kiste, 12 von 40 – läuft"/' {} +
counted 10000
timed text "$few" 2 -- status - null "$agents" status --json \
    -- cat - null /bin/sh -c "cd '$state/sessions' && cat *.json"
rm -rf "$dir/10" "$dir/1000" "$dir/10000"

# --- records over bridges ------------------------------------------------------

# The same work twice: 10,000 hooks, and as many lines of ten bridges, each of
# which may have 1,000 records; first all new, then all again.
clock() { date +%s%N; }
state=$dir/local
local_began=$(clock)
env -i TONGS_AGENTS_STATE_DIR="$state" xargs -I @@ "$hook" claude UserPromptSubmit \
    "{\"session_id\":\"s-@@\",\"cwd\":\"$dir/project\"}" <"$dir/numbers"
local_again=$(clock)
env -i TONGS_AGENTS_STATE_DIR="$state" xargs -I @@ "$hook" claude UserPromptSubmit \
    "{\"session_id\":\"s-@@\",\"cwd\":\"$dir/project\"}" <"$dir/numbers"
local_ended=$(clock)
rm -rf "$state"
env -i TONGS_AGENTS_STATE_DIR="$state" xargs -P 2 -I @@ "$agents" notify --harness other \
    --session s-@@ --instance unresolved --status running --cwd "$dir/project" \
    --detail 'building the release, 12 of 40 crates' --tool make --event step --sequence 1 <"$dir/numbers"
find "$state/sessions" -name '*.json' -exec awk 1 {} + >"$dir/first"
rm -rf "$state"
sed 's/"sequence":1,/"sequence":2,/' "$dir/first" >"$dir/second"
state=$dir/bridged
# Prints the nanoseconds of ten imports of a file's lines, 1,000 by each bridge.
imported() {
    split -l 1000 -a 1 "$1" "$dir/lines-"
    began=$(clock)
    for lines in "$dir"/lines-?; do
        TONGS_AGENTS_STATE_DIR=$state "$bin/tongs-bridge-import" --bridge "b${lines##*-}" "$lines" >"$dir/results"
    done
    echo $(($(clock) - began))
}
bridged_first=$(imported "$dir/first")
bridged_again=$(imported "$dir/second")
counted 10000
timed bridged "$few" 1 -- cleanup - null "$agents" cleanup \
    -- cat - null /bin/sh -c "cd '$state/sessions' && cat *.json"
memory maintain - null "$agents" cleanup
rm -rf "$state"
sed -n '1,1000s/"sequence":1,//p' "$dir/first" >"$dir/unordered"
memory import "$dir/unordered" null "$bin/tongs-bridge-import" --bridge b
rm -rf "$state"

# --- the maintainer ----------------------------------------------------------

state=$dir/hook
if ! command -v ps >/dev/null 2>&1; then
    skip "maintenance: ps is not installed"
else
    "$bin/sleepers" 1000 "$dir/asleep" &
    sleepers=$!
    helpers=$sleepers
    until [ -e "$dir/asleep" ] || ! kill -0 "$sleepers" 2>/dev/null; do
        sleep 0.1
    done
    if [ -e "$dir/asleep" ]; then
        processes=$(ps -e | awk 'END { print NR - 1 }')
        timed clean "$few" 2 -- cleanup - null "$agents" cleanup \
            -- ps - null "$(command -v ps)" -eo pid,ppid,comm
        if [ -n "$strace" ]; then
            drive time 1 0 -- traced - null "$strace" -f -o "$dir/cleanup.trace" "$agents" cleanup
            children=$(grep -cE ' (clone|clone3|fork|vfork)\(' "$dir/cleanup.trace" || :)
            passes=$(grep -c ' open[a-z]*(.*"/proc", ' "$dir/cleanup.trace" || :)
        fi
    else
        skip "maintenance: 1,000 processes could not be started"
    fi
    kill "$sleepers" 2>/dev/null || :
    wait "$sleepers" || :
    helpers=
fi

# --- from the start of an agent to the answer of a wait ----------------------

state=$dir/seen
drive seen "$some" "$agents" "$bin/claude" /bin/sh -c \
    "'$hook' claude SessionStart <'$dir/small'; read -r line"
read -r seen_median seen_slow <"$dir/out"

# --- the full screen ---------------------------------------------------------

state=$dir/screen
screen_idle=
if ! command -v python3 >/dev/null 2>&1; then
    skip "the full screen: python3 is not installed"
else
    for number in $(seq 500); do
        TONGS_AGENTS_STATE_DIR=$state "$agents" notify --harness other --session "s$number" \
            --status idle --cwd /src/tongs --detail 'All tests pass.'
    done
    TONGS_AGENTS_STATE_DIR=$state await python3 "$here/screen.py" "$binary" "$some" 10 \
        "$state/sessions" >"$dir/out"
    read -r screen_first screen_list screen_idle <"$dir/out"
fi

# --- from a hook in a sandbox to a row outside -------------------------------

bridge=
if command -v python3 >/dev/null 2>&1; then
    mkdir "$dir/bridge"
    await python3 "$here/bridge.py" "$binary" "$some" "$dir/bridge" >"$dir/out"
    read -r bridge bridge_slow <"$dir/out"
fi

# --- writers at once ---------------------------------------------------------

writers() {
    state=$2/writers
    drive burst 256 "$dir/small" "$state" "$hook" claude PostToolUse
    sed "s/^/$1 /" "$dir/out" >>"$dir/bursts"
    rm -rf "$state"
}
writers "$(file_system "$dir")" "$dir"
if [ "$(file_system "$disk")" = "$(file_system "$dir")" ]; then
    skip "writers on a disk: TMPDIR is on the same kind of file system"
else
    disk_dir=$(mktemp -d "$disk/tongs-bench.XXXXXX")
    others=$disk_dir
    writers "$(file_system "$disk")" "$disk_dir"
fi

# --- what came of it ---------------------------------------------------------

size=$(wc -c <"$binary")
say "tongs bench: $machine, load $(cut -d' ' -f1 /proc/loadavg)," \
    "stores on $(file_system "$dir"), n = $runs"
say "Medians of runs that took turns. The ratios count; the times are this machine's. On a busy machine"
say "the ratio of the fastest runs says more; the verdict is on the medians all the same."
say
# A line: what, ours, theirs, unit, what it is compared with, ratio of the
# fastest runs, sign, bar. Without "theirs" the bar is for our value itself; "-"
# is no bar.
line() { printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@"; }
value() { line "$1" "$2" '' "$3" '' '' "$4" "$5"; }
ratio() {
    awk -v ours="$2" -v theirs="$3" '
        { median[$1] = $2; fastest[$1] = $3 }
        END { if (ours in median && theirs in median)
            print median[ours], median[theirs], fastest[ours] / fastest[theirs] }' "$dir/times" |
        while read -r our_time their_time fastest; do
            line "$1" "$our_time" "$their_time" ns "$4" "$fastest" "$5" "$6"
        done
}
{
    ratio 'hook, 1 kB' same-hook same-floor 'its system calls alone' '<=' 1.5
    ratio 'hook, 1 kB' shell-hook shell-sh 'sh -c :' '<=' 0.55
    ratio 'hook, 1 kB' reference-hook reference-reference 'the reference hook' '1/' 100
    [ -z "$strace" ] || value 'hook: system calls' "$hook_calls" '' '<=' 80
    [ -z "${other_calls-}" ] || value 'hook: calls that are not those compared with' "$other_calls" '' '<=' 0
    value 'hook, 1 kB: peak memory' "$(peak small)" KiB '<=' 1024
    ratio 'hook, 10 MB' large-hook large-drain 'reading and dropping' '<=' 1.3
    line 'hook, 10 MB: peak memory' "$(peak large)" "$(peak small)" KiB '1 kB' '' '<=' 1.2
    for count in 10 1000 10000; do
        cat_bar=- raw_bar=-
        [ "$count" != 10000 ] || { cat_bar=0.5 raw_bar=1.9; }
        ratio "status --json, $count records" "s$count-cat-status" "s$count-cat-cat" 'cat' '<=' "$cat_bar"
        ratio "status --json, $count records" "s$count-raw-status" "s$count-raw-raw" 'a bare loop' '<=' "$raw_bar"
    done
    ratio 'status --json, 10000 not ASCII' text-status text-cat 'cat' '<=' 0.8
    value 'status --json, 10000: peak memory' "$(peak status)" KiB '<=' 2048
    ratio "cleanup, ${processes-} processes" clean-cleanup clean-ps 'ps -eo pid,ppid,comm' '<=' 0.3
    [ -z "${children-}" ] || value 'cleanup: child processes' "$children" '' '<=' 0
    [ -z "${passes-}" ] || value 'cleanup: passes over /proc' "$passes" '' '<=' 1
    line '10,000 new records over bridges' "$bridged_first" "$((local_again - local_began))" ns '10,000 hooks' '-' '<=' -
    line '10,000 records over bridges again' "$bridged_again" "$((local_ended - local_again))" ns '10,000 hooks' '-' '<=' -
    ratio 'cleanup, 10,000 records of bridges' bridged-cleanup bridged-cat 'cat' '<=' -
    value 'the same: peak memory' "$(peak maintain)" KiB '<=' -
    value 'import of 1,000 lines: peak memory' "$(peak import)" KiB '<=' -
    value 'start of an agent to the answer of wait' "$((seen_median / 1000))" us '<=' -
    value 'the same, 95 percent of them' "$((seen_slow / 1000))" us '<=' 50000
    [ -z "$screen_idle" ] || line 'monitor, 500 sessions: first screen' "$screen_first" "$screen_list" ns \
        'ls -l of them' '' '<=' -
    [ -z "$screen_idle" ] || value 'the same, idle: processor time in 10 s' "$((screen_idle / 1000))" us '<=' -
    [ -z "$bridge" ] || value 'hook inside to row outside, over a bridge' "$((bridge / 1000))" us '<=' -
    [ -z "$bridge" ] || value 'the same, 95th percentile' "$((bridge_slow / 1000))" us '<=' -
    while read -r where lost torn reads timeouts faults temps took create; do
        value "256 writers, $where: lost" "$lost" '' '<=' 0
        value "256 writers, $where: torn of $reads reads" "$torn" '' '<=' 0
        value "256 writers, $where: lock time-outs" "$timeouts" '' '<=' 0
        value "256 writers, $where: other faults, temps left" "$((faults + temps))" '' '<=' 0
        line "256 writers, $where: all of them" "$took" "$create" ns 'making one file' '-' '<=' -
    done <"$dir/bursts"
    value 'binary' "$size" B '<=' 1572864
} | awk -F '\t' '
    function shown(value, unit) {
        if (value == "") return ""
        if (unit != "ns") return value (unit == "" ? "" : " " unit)
        if (value < 9999500) return sprintf("%.0f us", value / 1000)
        return sprintf("%.1f ms", value / 1000000)
    }
    function times(ratio) { return inverse ? sprintf("1/%.0f", 1 / ratio) : sprintf("%.2f", ratio) }
    function row(a, b, c, d, e, f, g) { printf "%-46s %9s  %-31s %7s %8s  %-10s %s\n", a, b, c, d, e, f, g }
    BEGIN { row("what", "tongs", "against", "ratio", "fastest", "bar", "") }
    {
        inverse = $7 == "1/"
        ratio = $3 == "" ? $2 : $2 / $3
        limit = inverse ? 1 / $8 : $8
        plain = $3 == "" || $6 == "-"
        row($1, shown($2, $4), $3 == "" ? "" : shown($3, $4) " " $5, plain ? "" : times(ratio),
            $6 == "" || $6 == "-" ? "" : times($6), $8 == "-" ? "" : "<= " (inverse ? "1/" : "") $8,
            $8 == "-" ? "" : ratio <= limit ? "ok" : "MISSED")
    }'
say
awk '{ print "peak memory, " $1 ": " $2 " KiB of its own, ru_maxrss " $3 " KiB (not below that of the measuring program)" }' \
    "$dir/peaks"
cat "$dir/notes"
