#!/bin/sh
# Installs what was built, all of it or nothing; `make install` runs it. Puts the tree
# together in a directory of its own (`make tree`), looks at every place that it goes
# to, copies each file beside its place, and then gives all of them their names.
# Environment: DESTDIR, which may have any character but a newline, and MAKE.
# FORCE=1 replaces files of other programs as well.
set -eu
umask 022
fail() {
    printf 'make: %s\n' "$*" >&2
    exit 1
}
[ -x build/tongs ] || fail "nothing is built: run 'make' first, as the user who has Rust"

# Units, property lists and scripts name these directories as they are.
for name in prefix exec_prefix bindir datarootdir datadir mandir unitdir bashdir zshdir fishdir; do
    value=
    eval "value=\${$name-}"
    case $value in
        *[!A-Za-z0-9/._+@:,=~-]*)
            fail "$name may have letters, digits and /._+@:,=~- in it: '$value' has others" ;;
        '' | /*) ;;
        *) fail "$name must begin with /: it is '$value'" ;;
    esac
done
root=${DESTDIR:-}
case $root in
    *"
"*) fail 'DESTDIR must not have a newline in it' ;;
    '' | /*) ;;
    *) root=$PWD/$root ;;
esac

nothing() { fail "nothing was installed: $*"; }
work=$(mktemp -d) || nothing 'no temporary directory can be made: set TMPDIR'
# Takes back what was begun, the newest first.
undo() {
    [ ! -f "$work/copied" ] || while IFS= read -r path; do rm -f "$path"; done <"$work/copied"
    [ ! -f "$work/made" ] || sed -n '1!G;h;$p' "$work/made" | while IFS= read -r path; do
        rmdir "$path" 2>/dev/null || :
    done
    rm -rf "$work"
}
trap undo EXIT
trap 'exit 1' HUP INT TERM

mkdir "$work/tree"
# shellcheck disable=SC2086 # a make may have options
STAGE=$work/tree ${MAKE:-make} -s tree ||
    nothing "the tree could not be made in $work; TMPDIR names another place"
(cd "$work/tree" && find . -type d | sed 's/^\.//' | sort) >"$work/dirs"
(cd "$work/tree" && find . ! -type d | sed 's/^\.//' | sort) >"$work/files"
# make -n
[ -s "$work/files" ] || exit 0

# Whether what stands at a place is an earlier one of what goes there: the same link,
# or a file that names one of our programs, as every one of ours does.
ours() { # staged place
    if [ -L "$1" ] && [ -L "$2" ]; then
        [ "$(readlink "$1")" = "$(readlink "$2")" ]
    else
        [ -f "$2" ] && LC_ALL=C grep -q -e tongs-hook -e tongs-agents -e tongs-bridge "$2"
    fi
}

while IFS= read -r path; do
    up=$root$path
    while [ -n "$up" ] && [ ! -e "$up" ] && [ ! -L "$up" ]; do up=${up%/*}; done
    up=${up:-/}
    [ -d "$up" ] || nothing "$up is no directory: move it away"
    # Only where something goes.
    if [ "${up%/}" != "$root$path" ] || grep -q "^$path/[^/]*\$" "$work/files"; then
        if [ ! -w "$up" ] || [ ! -x "$up" ]; then
            nothing "$up cannot be written: try 'sudo make install'," \
                "or 'make install prefix=\$HOME/.local'"
        fi
    fi
done <"$work/dirs"
while IFS= read -r path; do
    place=$root$path
    if [ -d "$place" ] && [ ! -L "$place" ]; then
        nothing "$place is a directory: move it away"
    elif [ -e "$place" ] || [ -L "$place" ]; then
        [ -n "${FORCE:-}" ] || ours "$work/tree$path" "$place" ||
            nothing "$place is of another program: move it away," \
                "or replace it by 'make install FORCE=1'"
    fi
done <"$work/files"

up=$root
while [ -n "$up" ] && [ ! -d "$up" ]; do
    printf '%s\n' "$up"
    up=${up%/*}
done | sort >"$work/made"
while IFS= read -r path; do
    up=$root$path
    [ ! -d "${up:-/}" ] || continue
    printf '%s\n' "$up" >>"$work/made"
    mkdir -p "$up" 2>"$work/why" || nothing "$(sed 1q "$work/why")"
done <"$work/dirs"
# Where a file waits until all of them are there.
waiting() { echo "${1%/*}/.${1##*/}.new$$"; }
while IFS= read -r path; do
    new=$root$(waiting "$path")
    printf '%s\n' "$new" >>"$work/copied"
    cp -pP "$work/tree$path" "$new" 2>"$work/why" ||
        nothing "$(sed 1q "$work/why")"
done <"$work/files"
while IFS= read -r path; do
    place=$root$path
    # A link to a directory would be gone into.
    [ ! -d "$place" ] || rm -f "$place"
    mv -f "$root$(waiting "$path")" "$place"
done <"$work/files"
rm -f "$work/made" "$work/copied"
programs=$(sed -n 's|/tongs-hook$||p' "$work/files" | sed 1q)
printf 'tongs is installed in %s; next: tongs-agents install --all\n' "$root$programs"
