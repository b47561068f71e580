#!/bin/sh
# Does what the README says on a bare Debian machine, as somebody does who has just
# met it: makes such a machine in a directory of its own, installs what the README
# asks for and not more, and runs its commands as a plain user. Then, in a second bare
# machine, installs the Debian package, uses it and removes it again.
#
# Usage: run.sh, as root (make freshcheck). Needs debootstrap, git, unshare and pivot_root. What
# stands committed is checked (HEAD). Takes a quarter of an hour and 3 GB.
# SUITE=bookworm   another release than this machine's
# MIRROR=URL       another mirror than that of this machine's apt
# KEEP=1           leave the directory and say where it is
# TMPDIR=DIR       where the directory is made; not on a file system that is `nodev`
#
# Rust is the release's own where that is new enough, which is what the README says;
# else the toolchain of this machine is mounted in, read only, for rustup would bring
# the same one. What this machine has for reaching anything is taken along: name
# servers, options of apt, certificates, proxies, the configuration of cargo.
#
# Exit status: 0 all passed, 69 it cannot be tried here, 70 no bare machine could be
# made, 71 the README's packages, 72 Rust, 73 `make demo`, 74 `make check`, 75 `make
# deb`, 76 the package; 130 a signal.
# shellcheck disable=SC2317 # step and trap call them
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
# shellcheck source=packaging/freshcheck/steps.sh
. packaging/freshcheck/steps.sh
cannot() { echo "$self: $*" >&2; exit 69; }
[ "$(id -u)" = 0 ] || cannot 'only root can make a machine: sudo make freshcheck'
for pair in debootstrap:debootstrap git:git unshare:util-linux pivot_root:util-linux; do
    command -v "${pair%%:*}" >/dev/null 2>&1 ||
        cannot "${pair%%:*} is not installed: apt-get install ${pair##*:}"
done
unshare --mount --pid --fork true 2>/dev/null || cannot 'no namespaces can be made here'
git rev-parse -q --verify HEAD >/dev/null 2>&1 || cannot 'this is no repository of git'

own=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
suite=${SUITE:-$own}
# shellcheck disable=SC2016 # apt's own names
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' \
    'Created-By: Packages' 2>/dev/null | sed -n "s/ ${own:-none} Debian\$//p" | head -n 1)}

dir=$(mktemp -d "${TMPDIR:-/tmp}/tongs-freshcheck.XXXXXX")
report=$dir/report
child=
# Ends what still runs in a machine, all of it, and with it its mounts.
clean() {
    [ -z "$child" ] || { kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || :
    if [ -n "${KEEP:-}" ]; then echo "$self: kept: $dir"; else rm -rf --one-file-system "$dir"; fi
}

trap clean EXIT
trap 'echo "$self: a signal came: FAILED"; exit 130' HUP INT TERM

# Runs a command so that a signal is answered at once. What a shell puts aside ignores
# SIGINT, which no test expects.
run() {
    env --default-signal "$@" </dev/null &
    child=$!
    wait "$child" && code=0 || code=$?
    child=
    return "$code"
}

bare() {
    run unshare --mount --propagation private --pid --fork --kill-child \
        debootstrap --variant=minbase "$suite" "$dir/bare" ${mirror:+"$mirror"}
}

begun=$(date +%s)
say "a bare Debian ($suite) in $dir"
step 70 "debootstrap --variant=minbase $suite" bare

mkdir "$dir/bare/freshcheck" "$dir/bare/freshcheck/tree"
cp packaging/freshcheck/inside.sh packaging/freshcheck/steps.sh "$dir/bare/freshcheck/"
git archive HEAD | tar -x -C "$dir/bare/freshcheck/tree"
cp -L /etc/resolv.conf "$dir/bare/etc/resolv.conf"
# Options that say how to reach a mirror; the rest of apt is as Debian has it.
apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries|Force)' \
    >"$dir/bare/etc/apt/apt.conf.d/90reach" || :
for file in /usr/local/share/ca-certificates/*.crt; do
    [ ! -e "$file" ] || install -D -m 644 "$file" "$dir/bare$file"
done
# How cargo and others reach their servers: variables, and the user's file.
env | grep -E '^(CARGO_(HTTP|NET|REGISTR|SOURCE)[A-Z_]*|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR))=' |
    sed "s/'/'\\\\''/g; s/=/='/; s/\$/'/; s/^/export /" >"$dir/bare/freshcheck/carried" || :
config=${CARGO_HOME:-${HOME:-/root}/.cargo}/config.toml
[ ! -e "$config" ] || install -D -m 644 "$config" "$dir/bare/etc/skel/.cargo/config.toml"
TOOLCHAIN=$(rustc --print sysroot 2>/dev/null || :)
export TOOLCHAIN

machine_of() { # name what
    cp -a "$dir/bare" "$dir/$1"
    : >"$dir/$1/freshcheck/report"
    ended=0
    run unshare --mount --propagation private --pid --fork --kill-child \
        sh packaging/freshcheck/inside.sh enter "$dir/$1" "$2" || ended=$?
    cat "$dir/$1/freshcheck/report" >>"$report"
}

verdict() {
    say "what was done, on Debian $suite:"
    cat "$report"
    if [ "$ended" = 0 ]; then
        echo "$self: PASSED in $(($(date +%s) - begun)) s"
    else
        echo "$self: FAILED in $(($(date +%s) - begun)) s (exit status $ended)"
    fi
    exit "$ended"
}

machine_of first readme
[ "$ended" = 0 ] || verdict
cp "$dir"/first/freshcheck/tongs_*.deb "$dir/bare/freshcheck/"
[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$dir/first"
machine_of second package
verdict
