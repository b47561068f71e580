# shellcheck shell=sh disable=SC2034,SC2154
# What the scripts of measurement share; sourced, with `here` the directory of
# this file and `binary` the program. Begins with a directory that is thrown
# away, `dir`, and the programs in it.

disk=${TMPDIR:-/tmp}

# Where memory is the disk, if there is room for the large stores.
base=$disk
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
    room=$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')
    [ "$room" -lt 250000 ] || base=/dev/shm
fi
umask 077
dir=$(mktemp -d "$base/tongs-bench.XXXXXX")
# What ends with the script: processes in the background, and other directories.
helpers=
others=
job=
clean() {
    trap - EXIT HUP INT TERM
    [ -z "$job" ] || kill "$job" 2>/dev/null || :
    for helper in $helpers; do
        { kill "$helper" && wait "$helper"; } 2>/dev/null || :
    done
    # What was told to end may still be writing.
    for _ in 1 2 3 4 5; do
        # shellcheck disable=SC2086 # words
        ! rm -rf "$dir" $others 2>/dev/null || break
        sleep 0.2
    done
}
trap clean EXIT
trap 'clean; exit 129' HUP
trap 'clean; exit 130' INT
trap 'clean; exit 143' TERM

say() { printf '%s\n' "$*"; }
skip() { say "skipped: $*" >>"$dir/notes"; }
: >"$dir/notes"

# Waits for a command in a way that a signal to this script can end.
await() {
    "$@" &
    job=$!
    code=0
    wait "$job" || code=$?
    job=
    return "$code"
}

cc=${CC:-gcc}
command -v "$cc" >/dev/null 2>&1 || { echo "$(basename "$0"): cannot find a C compiler: set CC" >&2; exit 69; }
bin=$dir/bin
mkdir "$bin" "$dir/project"
cp "$binary" "$bin/tongs"
"$bin/tongs" --install-links "$bin"
hook=$bin/tongs-hook
agents=$bin/tongs-agents
compile() {
    for name in "$@"; do
        "$cc" -O2 -Wall -Wextra -o "$bin/$name" "$here/$name.c"
    done
}
compile drive claude

# A script says how it enters the environment that it measures in, with
# inside(), which replaces the process. Measured is below a process named
# claude with one process between, as a harness's shell is.
drive() { await inside "$bin/claude" "$bin/drive" "$@" >"$dir/out"; }
# Keeps what a timed run printed, names with a prefix.
timed() {
    prefix=$1
    shift
    drive time "$@"
    sed "s/^/$prefix-/" "$dir/out" >>"$dir/times"
}
memory() {
    weighed=$1
    shift
    drive peak "$@"
    sed "s/^/$weighed /" "$dir/out" >>"$dir/peaks"
}
peak() { awk -v what="$1" '$1 == what { print ($2 > 0 ? $2 : $3) }' "$dir/peaks"; }

file_system() { df -PT "$1" | awk 'NR == 2 { print $2 }'; }
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
machine="$(getconf _NPROCESSORS_ONLN) x ${model:-CPU}, $(uname -sr)"
