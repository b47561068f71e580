#!/bin/sh
# Removes what `make install` put there, and nothing of anybody else's:
#   uninstall.sh DIRECTORY FILE...
# DIRECTORY is tongs's own, whose files are looked at below it. A file is ours if it
# names one of our programs, a link if it leads to one. Environment: DESTDIR.
set -u
root=${DESTDIR:-}
case $root in '' | /*) ;; *) root=$PWD/$root ;; esac

ours() {
    if [ -L "$1" ]; then
        case $(readlink "$1") in tongs | tongs.fish) return 0 ;; *) return 1 ;; esac
    fi
    [ -f "$1" ] && LC_ALL=C grep -q -e tongs-hook -e tongs-agents -e tongs-bridge "$1"
}
code=0
remove() {
    # What an install that was killed has left beside it.
    for new in "${1%/*}/.${1##*/}.new"[0-9]*; do
        [ ! -e "$new" ] && [ ! -L "$new" ] || rm -f -- "$new" || code=1
    done
    [ -e "$1" ] || [ -L "$1" ] || return 0
    if ours "$1"; then
        rm -f -- "$1" || code=1
    else
        printf 'make: %s is not of tongs and stays\n' "$1" >&2
    fi
}

own=$root$1
shift
for path in "$@"; do
    remove "$root$path"
done
for path in "$own"/*/* "$own"/*/.*; do
    case $path in */. | */..) continue ;; esac
    remove "$path"
done
for dir in "$own"/*/ "$own"; do
    [ ! -d "$dir" ] || rmdir -- "$dir" 2>/dev/null || :
done
exit "$code"
