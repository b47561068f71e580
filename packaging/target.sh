#!/bin/sh
# Prints the target to build for: static musl where its standard library is
# installed or rustup can add it, else this machine's glibc.
set -eu
rustc=${RUSTC:-rustc}
host=$("$rustc" -vV | sed -n 's/^host: //p')
case $host in
    *-linux-*) ;;
    *) echo "$host"; exit 0 ;;
esac
musl=${host%%-*}-unknown-linux-musl
has_std() { [ -d "$("$rustc" --print sysroot)/lib/rustlib/$1/lib" ]; }
if ! has_std "$musl" && command -v rustup >/dev/null 2>&1; then
    rustup target add "$musl" >/dev/null 2>&1 || :
fi
if has_std "$musl"; then echo "$musl"; else echo "$host"; fi
