#!/bin/sh
# Prints the flags that rustc is given for a target, a TOML array: a static
# program without position independence and with as few pages as can be, for
# its start is half of a hook, and without the names of this machine's
# directories.
set -eu
target=${1:?usage: flags.sh TARGET}
unnamed="--remap-path-prefix=${CARGO_HOME:-${HOME-}/.cargo}/registry/src=crates"
case $target in *-linux-*) ;; *) echo "['$unnamed']"; exit 0 ;; esac

here=$(cd "$(dirname "$0")" && pwd)
plain='-Ctarget-feature=+crt-static -Crelocation-model=static -Clink-arg=-Wl,-z,noseparate-code'
# In a static program of musl's nothing makes relocated data read-only again, so
# that keeping it apart is only pages. Linkers that cannot do this are left alone.
ordered="-Clink-arg=-Wl,-z,norelro -Clink-arg=-Wl,-T,$here/hook.ld"
variable=CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')_LINKER
eval "linker=\${$variable-}"
# Whether a program that standard input adds to can be built so and runs.
takes() {
    out=$(mktemp)
    code=0
    # shellcheck disable=SC2086 # words
    { cat; echo 'fn main() {}'; } |
        "${RUSTC:-rustc}" --edition 2024 --target "$target" ${linker:+"-Clinker=$linker"} "$@" -Cpanic=abort -o "$out" - >/dev/null 2>&1 &&
        "$out" 2>/dev/null || code=$?
    rm -f "$out"
    return "$code"
}
# shellcheck disable=SC2086 # words
case $target in
    *-musl)
        ! takes $plain $ordered </dev/null || plain="$plain $ordered"
        ! takes $plain <"$here/../src/frames.rs" || plain="$plain --cfg frameless"
        ;;
esac
# shellcheck disable=SC2086 # words
printf "'%s'," $plain $unnamed | sed 's/^/[/; s/,$/]/'
