#!/bin/sh
# Prints the flags that rustc is given for a target, a TOML array: a static
# program without position independence and with as few pages as can be, for
# its start is half of a hook, and without the names of this machine's
# directories. For another processor than this one's they name the linker, too.
set -eu
target=${1:?usage: flags.sh TARGET}
unnamed="--remap-path-prefix=${CARGO_HOME:-${HOME-}/.cargo}/registry/src=crates"
case $target in *-linux-*) ;; *) echo "['$unnamed']"; exit 0 ;; esac

here=$(cd "$(dirname "$0")" && pwd)
rustc=${RUSTC:-rustc}
machine=${target%%-*}
variable=CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')_LINKER
eval "linker=\${$variable-}"
# Words for a linker that is called by the C compiler, and how it runs a program.
by='-Clink-arg=-Wl,'
run=
if [ "$("$rustc" -vV | sed -n 's/^host: \([^-]*\)-.*/\1/p')" != "$machine" ]; then
    run=:
    if [ -z "$linker" ] && ! command -v "$machine-linux-gnu-gcc" >/dev/null 2>&1; then
        # It comes with Rust, and musl's library with the target.
        linker=rust-lld
    fi
    : "${linker:=$machine-linux-gnu-gcc}"
    case $linker in *lld) by='-Clink-arg=' ;; esac
fi
# A word of the linker's with its own words.
link() {
    first=$1
    shift
    case $by in
        *,) printf '%s' " $by$first"; [ $# -eq 0 ] || printf ',%s' "$@" ;;
        *) for word in "$first" "$@"; do printf '%s' " $by$word"; done ;;
    esac
}
plain="${linker:+-Clinker=$linker }-Ctarget-feature=+crt-static -Crelocation-model=static$(link -z noseparate-code)"
# In a static program of musl's nothing makes relocated data read-only again, so
# that keeping it apart is only pages. Linkers that cannot do this are left alone.
ordered="$(link -z norelro)$(link -T "$here/hook.ld")"
# Whether a program that standard input adds to can be built so, and runs where it
# can.
takes() {
    out=$(mktemp)
    code=0
    # shellcheck disable=SC2086 # words
    { cat; echo 'fn main() {}'; } |
        "$rustc" --edition 2024 --target "$target" "$@" -Cpanic=abort -o "$out" - >/dev/null 2>&1 &&
        $run "$out" 2>/dev/null || code=$?
    rm -f "$out"
    return "$code"
}
# shellcheck disable=SC2086 # words
case $target in
    *-musl)
        ! takes $plain $ordered </dev/null || plain="$plain$ordered"
        ! takes $plain <"$here/../src/frames.rs" || plain="$plain --cfg frameless"
        ;;
esac
# shellcheck disable=SC2086 # words
printf "'%s'," $plain $unnamed | sed 's/^/[/; s/,$/]/'
