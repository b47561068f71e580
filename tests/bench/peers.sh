#!/bin/sh
# Measures tongs against other programs that watch coding agents: what a hook
# costs with each, and a list of N sessions. Every ratio is of two commands that
# took turns, started by drive.c, on the same event or as many sessions. What
# cannot be shown to have done its work is not timed.
#
#   peers.sh [--markdown] BINARY
#
# --markdown      the table of packaging/BENCHMARKS.md, with the date
#
# needs           cargo, python3 with venv, and the registries, for what is not
#                 in PEERS_DIR; a C compiler; tmux
# PEERS_DIR       where the programs are, or are put, and stay; without it they
#                 are installed into a directory that is thrown away
# REFERENCE_VENV  a Python environment with claude-fleet-monitor in it
# PYTHON, CARGO   the programs to install with
# CC, TMPDIR      as for run.sh
# BENCH_N         counted runs of the short commands (default 300)
# BENCH_SESSIONS  how many sessions are listed (default "100 1000")
#
# The exit status is 0 when a program is missing or does not work here: it is
# named and left out.
set -eu
export LC_ALL=C

reference_version=0.9.1
agent_status_version=2.1.0
agent_berth_version=4.0.0
cctop_version=0.40.0

markdown=
if [ "${1-}" = --markdown ]; then
    markdown=yes
    shift
fi
binary=${1:?usage: peers.sh [--markdown] BINARY}
if ! [ -f "$binary" ] || ! [ -x "$binary" ]; then
    echo "peers.sh: '$binary' is no program: run 'make' first" >&2
    exit 64
fi
here=$(cd "$(dirname "$0")" && pwd)
runs=${BENCH_N:-300}
few=$(((runs + 9) / 10))
some=$(((runs + 4) / 5))
counts=${BENCH_SESSIONS:-100 1000}

# shellcheck source=SCRIPTDIR/common.sh
. "$here/common.sh"
: >"$dir/times"
: >"$dir/peaks"
: >"$dir/rows"

# --- the programs ------------------------------------------------------------

peers=${PEERS_DIR:-}
if [ -z "$peers" ]; then
    # Not where memory is the disk: a build is large.
    peers=$(mktemp -d "$disk/tongs-peers.XXXXXX")
    others=$peers
fi
mkdir -p "$peers"
peers=$(cd "$peers" && pwd)
others="$others $peers/building"

# A crate of a version, unless it is there: its "program" and its "name".
crate() {
    name="$1 $2"
    program=$peers/$1/bin/$1
    if ! [ -x "$program" ]; then
        echo "peers.sh: building $1 $2" >&2
        CARGO_TARGET_DIR=$peers/building "${CARGO:-cargo}" install --quiet --locked \
            --root "$peers/$1" "$1@$2" >"$dir/log" 2>&1 || {
            skip "$1 $2: cargo cannot install it: $(grep -m 1 '^error' "$dir/log" || tail -n 1 "$dir/log")"
            return 1
        }
    fi
    found=$(enter "$program" --version 2>/dev/null) || found=none
    case $found in
    *" $2") ;;
    *)
        skip "$1 $2: '$program' says that it is $found"
        return 1
        ;;
    esac
}

# With its dependencies, as its users have it.
reference() {
    name="claude-fleet-monitor $reference_version"
    venv=${REFERENCE_VENV:-$peers/reference}
    if ! [ -x "$venv/bin/claude-fleet-hook" ]; then
        echo "peers.sh: installing claude-fleet-monitor $reference_version" >&2
        { "${PYTHON:-python3}" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet \
            --disable-pip-version-check "claude-fleet-monitor==$reference_version"; } >"$dir/log" 2>&1 || {
            skip "the reference $reference_version: pip cannot install it: $(tail -n 1 "$dir/log")"
            return 1
        }
    fi
    found=$("$venv/bin/python" -c \
        'import importlib.metadata as m; print(m.version("claude-fleet-monitor"))' 2>/dev/null) || found=none
    [ "$found" = "$reference_version" ] || {
        skip "the reference: '$venv' has $found, not $reference_version"
        return 1
    }
}

# --- where everything runs ---------------------------------------------------

# A home, the directories of the XDG, and a search path with nothing in it but
# what the programs may ask for; in a network namespace of its own, so that
# nothing can be fetched or sent, and as somebody who is not root, for whom some
# take the home from the password file.
mkdir "$dir/home" "$dir/path" "$dir/run" "$dir/tmux"
for tool in sh env sleep ps git tmux; do
    ! found=$(command -v "$tool") || ln -s "$found" "$dir/path/$tool"
done
alone='unshare -n --map-user=1000 --map-group=1000'
if ! $alone true 2>/dev/null; then
    alone=
    skip "namespaces: not allowed here; the programs ran with the network in reach"
fi

state=$dir/tongs
fleet=$dir/fleet
pane=
inside() {
    # shellcheck disable=SC2086 # words
    exec $alone env -i HOME="$dir/home" PATH="$dir/path" TMUX_TMPDIR="$dir/tmux" \
        XDG_RUNTIME_DIR="$dir/run" XDG_CONFIG_HOME="$dir/home/.config" XDG_CACHE_HOME="$dir/home/.cache" \
        XDG_STATE_HOME="$dir/home/.local/state" XDG_DATA_HOME="$dir/home/.local/share" \
        DO_NOT_TRACK=1 CCTOP_TELEMETRY=0 CCTOP_ALL_USERS=0 TONGS_AGENTS_STATE_DIR="$state" FLEET_DIR="$fleet" \
        $pane "$@"
}
enter() { (inside "$@"); }
# One that stays until the end; its output is kept beside.
stays() {
    inside "$@" >"$dir/stays" 2>&1 &
    helpers="$! $helpers"
}
until_there() {
    for _ in $(seq 100); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    return 1
}

# A pane of a private tmux, which those that speak with tmux find by the
# environment, as they would in life. No client is attached.
if command -v tmux >/dev/null 2>&1 &&
    enter tmux -L peers -f /dev/null new-session -d -s peers 'sleep 100000' 2>/dev/null; then
    mux=$(enter tmux -L peers display-message -p '#{socket_path},#{pid},0 #{pane_id}')
    pane="TMUX=${mux% *} TMUX_PANE=${mux#* }"
    mux=${mux%,*}
    helpers="${mux##*,} $helpers"
else
    skip "tmux: it is not there, and nothing below ran in a pane of it"
fi

# --- the events --------------------------------------------------------------

# A prompt of 1 kB, the one event that all of them have a hook for.
fixture=$here/../fixtures/payloads/claude/UserPromptSubmit.json
session=3f1c2a90-5b7d-4e21-9c44-0d6e8a7b1f52
filler=$(tr -cd '[:alnum:] \n' <"$here/drive.c" | tr -s ' \n' ' ' |
    cut -c "1-$((1024 + 29 - $(wc -c <"$fixture")))")
sed -e "s|/home/dev/src/lantern|$dir/project|" -e "s|Add a retry to the fetch loop|$filler|" "$fixture" >"$dir/event"
grep -q "\"session_id\": \"$session\"" "$dir/event"
grep -q "\"prompt\": \"$filler\"" "$dir/event"

# The same from as many sessions, a file each, in a directory.
events() {
    mkdir "$dir/events"
    awk -v session="$session" -v count="$1" -v to="$dir/events" '
        { at = index($0, session)
          line[NR] = $0; where[NR] = at }
        END {
            for (i = 1; i <= count; i++) {
                id = substr(session, 1, 24) sprintf("%012d", i)
                file = to "/" sprintf("%06d", i)
                for (k = 1; k <= NR; k++)
                    print where[k] ? substr(line[k], 1, where[k] - 1) id \
                        substr(line[k], where[k] + length(session)) : line[k] >file
                close(file)
            }
        }' "$dir/event"
}
# Gives each of them to a hook, from a shell that lives on as an agent would.
fill() {
    rm -f "$dir/filled" "$dir/filled.not"
    # shellcheck disable=SC2016 # they are the inner shell's
    stays sh -c '
        events=$1 filled=$2
        shift 2
        for event in "$events"/*; do
            "$@" <"$event" || { : >"$filled.not"; exit 1; }
        done
        : >"$filled"
        exec sleep 100000' fill "$dir/events" "$dir/filled" "$@"
    for _ in $(seq 6000); do
        [ ! -e "$dir/filled" ] || return 0
        [ ! -e "$dir/filled.not" ] || return 1
        sleep 0.1
    done
    return 1
}

# --- comparing ---------------------------------------------------------------

# Takes back what a run gave that turned out to be worthless.
worthless() {
    grep -v "^$1-" "$dir/times" >"$dir/kept" || :
    mv "$dir/kept" "$dir/times"
    skip "$2"
}
# A row of what was timed and weighed as KEY-tongs and KEY-peer.
compared() {
    awk -v peer="$1" -v what="$2" -v key="$3" -v our_kib="$(peak "$3-tongs")" -v their_kib="$(peak "$3-peer")" '
        $1 == key "-tongs" { our = $2 }
        $1 == key "-peer" { their = $2; low = $5; high = $6 }
        END { printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", peer, what, our, their, low, high, our_kib, their_kib }
        ' "$dir/times" >>"$dir/rows"
}
since() { : >"$dir/mark"; sleep 0.05; }
arrived() { sed -n 's/.*"arrival_sequence": *\([0-9]*\).*/\1/p' "$1"/*.json 2>/dev/null | sort -n | tail -n 1; }

# hook_of PEER WHAT ROUNDS PROOF COMMAND...: times a hook, and keeps it if the
# function PROOF, which is told the rounds, finds the last of its work.
event=$dir/event
hook_of() {
    peer=$1 what=$2 rounds=$3 proof=$4 key=hook-$hooks
    shift 4
    hooks=$((hooks + 1)) state=$dir/tongs
    rm -rf "$state"
    since
    if ! timed "$key" "$rounds" 3 -- tongs "$event" null "$hook" claude UserPromptSubmit \
        -- peer "$event" null "$@" 2>"$dir/log"; then
        skip "$peer, $what: $(tail -n 1 "$dir/log")"
        return
    fi
    memory "$key-tongs" "$event" null "$hook" claude UserPromptSubmit
    memory "$key-peer" "$event" null "$@"
    if [ "$(arrived "$state/sessions")" != $((rounds + 3)) ]; then
        worthless "$key" "$peer, $what: the hook of tongs did not do its work"
    elif ! "$proof" $((rounds + 3)); then
        worthless "$key" "$peer, $what: it ran, but nothing shows that it did its work"
    else
        compared "$peer" "$what" "$key"
    fi
}
hooks=0

# Counts, of what a list printed, the sessions of events().
ids() { grep -o "${session%-*}-[0-9]\{12\}" | sort -u | wc -l; }
running() { grep -c ' RUNNING ' || :; }

# list_of PEER COUNT FORMAT PROOF COMMAND...: the same for a list; FORMAT is the
# option that tongs prints it with, and PROOF counts what the peer prints. Into a
# pipe instead of nowhere both may use all processors, see drive.c.
out=null
list_of() {
    peer=$1 count=$2 format=$3 proof=$4 what="list of $2" key=list-$lists
    shift 4
    lists=$((lists + 1)) state=$dir/store-$count rounds=$some
    [ "$count" -lt 1000 ] || rounds=$few
    [ "$count" -lt 10000 ] || rounds=5
    shown=$(enter "$@" 2>"$dir/log" | "$proof")
    if [ "$shown" != "$count" ]; then
        skip "$peer, $what: it shows $shown: $(tail -n 1 "$dir/log")"
        return
    fi
    set -- peer - "$out" "$@"
    # shellcheck disable=SC2086 # none or one word
    if ! timed "$key" "$rounds" 2 -- tongs - "$out" "$agents" status $format -- "$@" 2>"$dir/log"; then
        skip "$peer, $what: $(tail -n 1 "$dir/log")"
        return
    fi
    shift 3
    # shellcheck disable=SC2086 # none or one word
    memory "$key-tongs" - null "$agents" status $format
    memory "$key-peer" - null "$@"
    compared "$peer" "$what" "$key"
}
lists=0

for count in $counts; do
    state=$dir/store-$count
    events "$count"
    fill "$hook" claude UserPromptSubmit
    date +%s >"$state/sessions/.fleet-maintenance.stamp"
    enter "$agents" status --json | grep -q "\"total\":$count,.*\"skipped\":0}" || {
        echo "peers.sh: status does not show $count sessions" >&2
        exit 70
    }
    mv "$dir/events" "$dir/events-$count"
done
# The next of the counts for a program that keeps what it has: its events.
given() { ln -sfn "$dir/events-$1" "$dir/events"; }

size() { wc -c <"$1"; }
stripped() {
    ! command -v strip >/dev/null 2>&1 || { strip -o "$dir/stripped" "$1" && size "$dir/stripped"; }
}
: >"$dir/sizes"
sized() { printf '%s\t%s\t%s\n' "$@" >>"$dir/sizes"; }
sized tongs "$(size "$binary")" "$(stripped "$binary")"

# --- the reference -----------------------------------------------------------

# It reads the records of tongs, so the lists are of the same ones.
if reference; then
    wrote() { [ "$(arrived "$fleet")" = "$1" ]; }
    hook_of "$name" hook "$few" wrote "$venv/bin/claude-fleet-hook" prompt-submit --agent claude
    for count in $counts; do
        cp -Rp "$dir/store-$count/sessions" "$dir/fleet-$count"
        fleet=$dir/fleet-$count
        list_of "$name" "$count" '' running "$venv/bin/claude-fleet" status
    done
    fleet=$dir/fleet
    sized "$name" "$(find "$venv/lib" -type f ! -path '*/__pycache__/*' ! -path '*/pip/*' \
        ! -path '*/pip-*' ! -path '*/setuptools*' ! -path '*/pkg_resources/*' ! -path '*/_distutils_hack/*' \
        -exec cat {} + | wc -c)" ''
fi

# --- agent-status ------------------------------------------------------------

# It tells tmux to draw anew, once its file is written.
if crate agent-status "$agent_status_version"; then
    wrote() {
        grep -q '"event":"working"' "$dir/run/agent-status/$session" &&
            [ -n "$(find "$dir/run/agent-status/$session" -newer "$dir/mark")" ]
    }
    tmux_pane=$pane
    [ -z "$pane" ] ||
        hook_of "$name" 'hook, in tmux' "$runs" wrote "$program" set --agent claude-code working
    pane=
    hook_of "$name" 'hook, no tmux' "$runs" wrote "$program" set --agent claude-code working
    for count in $counts; do
        rm -rf "$dir/run/agent-status"
        given "$count"
        if fill "$program" set --agent claude-code working; then
            list_of "$name" "$count" '' ids "$program" list
        else
            skip "$name, list of $count: its hook failed: $(tail -n 1 "$dir/stays")"
        fi
    done
    pane=$tmux_pane
    sized "$name" "$(size "$program")" "$(stripped "$program")"
fi

# --- agent-berth -------------------------------------------------------------

# A server keeps the sessions, and the hook waits for its answer.
if crate agent-berth "$agent_berth_version"; then
    for count in hook $counts; do
        rm -rf "$dir/home/.local/state/agent-berth"
        stays "$program" server
        server=${helpers%% *}
        if ! until_there enter "$program" stats; then
            skip "$name: its server does not answer: $(tail -n 1 "$dir/stays")"
            break
        fi
        if [ "$count" = hook ]; then
            # In milliseconds, when the last report came.
            reported() {
                enter "$program" list --json | sed -n 's/.*"last_report_ms": *\([0-9]*\).*/\1/p'
            }
            wrote() { [ "$(reported)" -gt "$began" ]; }
            began=$(($(date +%s) * 1000 + 1000))
            sleep 2
            hook_of "$name" hook "$runs" wrote "$program" notify --provider claude
        elif given "$count" && fill "$program" notify --provider claude; then
            list_of "$name" "$count" --json ids "$program" list --json
            awk -v count="$count" '$1 == "VmHWM:" { print count, $2 }' "/proc/$server/status" >>"$dir/servers"
        else
            skip "$name, list of $count: its hook failed: $(tail -n 1 "$dir/stays")"
        fi
        kill "$server" 2>/dev/null || :
        wait "$server" 2>/dev/null || :
    done
    sized "$name" "$(size "$program")" "$(stripped "$program")"
fi

# --- cctop -------------------------------------------------------------------

# It lists what the agents' own logs tell; its hook speaks to the cctops that
# run, and "cctop wait" is one that needs neither a terminal nor a network. It
# waits for a session only beside its process, whose log is younger than that.
logs() {
    rm -rf "$dir/home/.claude"
    mkdir -p "$dir/home/.claude/projects/-project"
    awk -v session="$session" -v count="$1" -v cwd="$dir/project" -v time="$(date -u +%Y-%m-%dT%H:%M:%S.000Z)" \
        -v to="$dir/home/.claude/projects/-project" -v text="$filler" '
        function common(id, kind, uuid, parent) {
            return "{\"parentUuid\":" parent ",\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"" cwd \
                "\",\"sessionId\":\"" id "\",\"version\":\"2.1.283\",\"gitBranch\":\"main\",\"type\":\"" kind \
                "\",\"uuid\":\"" uuid "\",\"timestamp\":\"" time "\",\"message\":"
        }
        BEGIN {
            for (i = 1; i <= count; i++) {
                id = i == 1 && count == 1 ? session : substr(session, 1, 24) sprintf("%012d", i)
                asked = "a" substr(id, 2)
                file = to "/" id ".jsonl"
                print common(id, "user", asked, "null") "{\"role\":\"user\",\"content\":\"" text "\"}}" >file
                print common(id, "assistant", "b" substr(id, 2), "\"" asked "\"") \
                    "{\"id\":\"msg_" i "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-5\"," \
                    "\"content\":[{\"type\":\"text\",\"text\":\"Done.\"}],\"stop_reason\":\"end_turn\"," \
                    "\"usage\":{\"input_tokens\":12,\"output_tokens\":34}}}" >file
                close(file)
            }
        }'
}
if [ -z "$alone" ] && [ "$(id -u)" = 0 ]; then
    skip "cctop $cctop_version: as root it looks into the homes of the password file"
elif crate cctop "$cctop_version"; then
    logs 1
    log=$dir/home/.claude/projects/-project/$session.jsonl
    mv "$log" "$dir/log.jsonl"
    # shellcheck disable=SC2016 # they are the inner shell's
    stays sh -c '
        cd "$1"
        "$2" "$3" 100000 &
        sleep 1
        : >"$4"
        while IFS= read -r line; do
            printf "%s\n" "$line" >>"$4"
        done <"$5"
        shift 5
        exec "$@"' live "$dir/project" "$bin/claude" "$dir/path/sleep" "$log" "$dir/log.jsonl" \
        "$program" wait "$session" --until waiting --timeout 3m
    listener=${helpers%% *}
    # The last event asks for permission: the waiting one hears it, and ends well.
    heard() {
        sed 's/UserPromptSubmit/PermissionRequest/' "$event" >"$dir/ask"
        enter "$program" hook PermissionRequest <"$dir/ask"
        wait "$listener"
    }
    if until_there sh -c "ls '$dir'/run/cctop/hooks.d/*.sock"; then
        hook_of "$name" hook "$runs" heard "$program" hook UserPromptSubmit
    else
        skip "$name, hook: nothing listens to it: $(tail -n 1 "$dir/stays")"
    fi
    for count in $counts; do
        # It reads in several threads.
        out=pipe
        rm -rf "$dir/home/.cache"
        logs "$count"
        list_of "$name" "$count" --json ids "$program" --json
    done
    sized "$name" "$(size "$program")" "$(stripped "$program")"
fi

# --- what came of it ---------------------------------------------------------

# Lines of fields behind a tab, the first of them the heads, as a table.
table() {
    awk -F '\t' -v markdown="$markdown" '
        { for (i = 1; i <= NF; i++) {
              cell[NR, i] = $i
              if (length($i) > wide[i]) wide[i] = length($i) }
          fields = NF }
        END {
            for (n = 1; n <= NR; n++) {
                line = markdown ? "|" : ""
                for (i = 1; i <= fields; i++)
                    line = line (markdown ? " " cell[n, i] " |" : sprintf("%-" wide[i] + 2 "s", cell[n, i]))
                sub(/ +$/, "", line)
                print line
                if (markdown && n == 1) {
                    line = "|"
                    for (i = 1; i <= fields; i++) line = line (i < 3 ? "---|" : "---:|")
                    print line
                }
            }
        }'
    say
}
if [ -n "$markdown" ]; then
    say "Measured on $(date +%F): $(getconf _NPROCESSORS_ONLN) cores, $(uname -sm), kernel $(uname -r | sed 's/-.*//');" \
        "stores on $(file_system "$dir"); n = $runs."
else
    say "tongs and its peers: $machine, load $(cut -d' ' -f1 /proc/loadavg), stores on $(file_system "$dir"), n = $runs"
    say "Medians of runs that took turns. Only the ratios count; the times are this machine's."
fi
say
awk -F '\t' '
    function time(ns) { return ns < 9999500 ? sprintf("%.0f us", ns / 1000) : sprintf("%.1f ms", ns / 1000000) }
    function times(r) { return r < 9.95 ? sprintf("%.2f", r) : r < 99.5 ? sprintf("%.1f", r) : sprintf("%.0f", r) }
    BEGIN {
        OFS = "\t"
        print "against", "what", "time / tongs", "5 to 95 % of rounds", "tongs, it", "memory / tongs", "tongs, it (KiB)"
    }
    { print $1, $2, times($4 / $3), times($5) " to " times($6), time($3) ", " time($4),
          ($7 > 0 ? times($8 / $7) : ""), $7 ", " $8 }' "$dir/rows" | table
awk -F '\t' '
    function times(n, by) { return n && by ? sprintf("%.2f", n / by) : "" }
    BEGIN { OFS = "\t"; print "installed", "bytes", "bytes / tongs", "without symbols", "without symbols / tongs" }
    { if (NR == 1) { all = $2; bare = $3 }
      print $1, $2, times($2, all), $3, times($3, bare) }' "$dir/sizes" | table
[ ! -s "$dir/servers" ] || awk '
    { print "peak memory of the server of agent-berth with " $1 " sessions: " $2 " KiB" }' "$dir/servers"
cat "$dir/notes"
