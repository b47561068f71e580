#!/bin/sh
# The half of run.sh that runs in the bare machine, as its first process.
# Usage: inside.sh enter ROOT STAGE, in a mount and a process namespace of its own:
# makes ROOT the root and goes on there with STAGE, `readme` or `package`.
# shellcheck disable=SC2317 # step calls them
set -eu

# Nothing stays mounted or running: both end with the namespaces.
if [ "$1" = enter ]; then
    root=$2
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    if [ -n "${TOOLCHAIN:-}" ]; then
        mkdir -p "$root/opt/rust"
        mount --bind "$TOOLCHAIN" "$root/opt/rust"
        mount -o remount,bind,ro "$root/opt/rust"
    fi
    # A changed root and no more would forbid namespaces, which tests make.
    cd "$root"
    mkdir -p old
    pivot_root . old
    # shellcheck disable=SC2016 # for the shell inside
    exec chroot . sh -c 'umount -l /old && rmdir /old && exec env -i sh /freshcheck/inside.sh "$@"' \
        sh "$3"
fi

report=/freshcheck/report home=/home/tester rust=
# shellcheck source=packaging/freshcheck/steps.sh
. /freshcheck/steps.sh

# What the section `Try it` of the README shows as commands that begin so.
readme() {
    sed -n '/^## Try it/,/^## /s/^    //p' "$1/README.md" | grep "^$2"
}

# A command of the user who was made there; what is taken along comes from `carried`.
as_user() {
    (
        cd "$home/tongs" 2>/dev/null || cd "$home"
        # shellcheck source=/dev/null
        . /freshcheck/carried
        exec setpriv --reuid tester --regid tester --init-groups env "HOME=$home" USER=tester \
            LOGNAME=tester SHELL=/bin/bash TMPDIR=/tmp "PATH=$rust/usr/local/bin:/usr/bin:/bin" \
            "$@"
    )
}

apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null; }
packages() {
    command=$(readme /freshcheck/tree 'apt-get install') || {
        echo "$self: the README has no line with apt-get install" >&2
        return 1
    }
    echo "    $command"
    DEBIAN_FRONTEND=noninteractive sh -euc "$command" </dev/null
}

machine() {
    apt update && useradd --create-home --shell /bin/bash tester
}

# Which version is the newer one of two.
newest() { printf '%s\n' "$@" | sort -V | tail -n 1; }
get_rust() {
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' /freshcheck/tree/Cargo.toml)
    own=$(apt-cache policy rustc | sed -n 's/^ *Candidate: //p')
    if [ "$(newest "$needed" "$own")" = "$own" ]; then
        echo "    apt-get install -y cargo"
        apt install -y cargo
    else
        echo "    its own Rust is ${own:-not there}: that of the machine around it is mounted"
        [ -x /opt/rust/bin/cargo ] || {
            echo "$self: there is none: install Rust $needed by rustup first" >&2
            return 1
        }
        rust=/opt/rust/bin:
    fi
    as_user cargo --version && as_user rustc --version
}

sources() {
    cp -R /freshcheck/tree "$home/tongs" && chown -R tester: "$home/tongs"
}

from_readme() {
    command=$(readme /freshcheck/tree "$1") || return 1
    echo "    $command"
    # A test that hangs is one that failed.
    as_user timeout -k 10 3600 sh -euc "$command" </dev/null
}

make_deb() {
    as_user make deb OUT=dist && cp "$home"/tongs/dist/tongs_*.deb /freshcheck/
}

# All that is there, but for what a package manager notes.
everything() {
    find / -xdev \( -path /freshcheck -o -path /proc -o -path /sys -o -path /dev -o -path /tmp \
        -o -path /home -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache \
        -o -path /var/log \) -prune -o -print | sort
}

helpers() { apt install -y man-db bash-completion; }
install_deb() {
    everything >/freshcheck/before
    apt install -y /freshcheck/tongs_*.deb
}

use_deb() {
    as_user tongs-agents status &&
        as_user env MANPAGER=cat MANWIDTH=80 man tongs >/freshcheck/page &&
        grep -q '^NAME' /freshcheck/page && sed -n '1,5p' /freshcheck/page
}

# A user's own shell at a terminal, in which somebody types and presses TAB.
complete() {
    typed=/freshcheck/typed
    : >"$typed"
    # Waits until the terminal shows it, ten seconds at most.
    shows() {
        tries=0
        until grep -qF -e "$1" "$typed"; do
            tries=$((tries + 1))
            [ "$tries" -lt 50 ] || return 0
            sleep 0.2
        done
    }
    {
        # shellcheck disable=SC2016 # the prompt
        shows '$ '
        printf 'tongs-agents sta\t'
        shows 'tongs-agents status'
        printf -- '--help\nexit\n'
        sleep 1
    } | as_user env TERM=dumb script -qec 'bash -i' /dev/null >"$typed" 2>&1 || :
    cat "$typed"
    grep -qF 'tongs-agents status --help' "$typed"
}

remove_deb() {
    apt remove -y tongs && everything >/freshcheck/after &&
        diff /freshcheck/before /freshcheck/after
}

mount -t sysfs -o ro sysfs /sys
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,gid=5,mode=620 devpts /dev/pts
ln -sf pts/ptmx /dev/ptmx
export LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
step 70 "$1: a user, and what apt knows" machine
case $1 in
    readme)
        step 71 "README: the packages it asks for" packages
        step 72 "README: Rust" get_rust
        step 70 "the sources, as they are committed" sources
        step 73 "README: make demo" from_readme 'make demo'
        step 74 "README: make check" from_readme 'make check'
        step 75 "make deb" make_deb
        ;;
    package)
        step 70 "package: man-db and bash-completion" helpers
        step 76 "package: apt-get install ./tongs_*.deb" install_deb
        step 76 "package: a list, and man tongs" use_deb
        step 76 "package: tongs-agents sta<TAB>" complete
        step 76 "package: apt-get remove tongs leaves nothing" remove_deb
        ;;
esac
