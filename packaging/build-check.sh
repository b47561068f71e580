#!/bin/sh
# Says what is missing for a build before it begins, and how to get it; prints nothing
# where all is there. Exit status 69 then.
set -eu
fail() {
    echo "make: $*" >&2
    exit 69
}
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
how="install Rust $needed or newer by rustup (https://rustup.rs),"
how="$how or from Debian 13 by apt-get install cargo"
cargo=${CARGO:-cargo} rustc=${RUSTC:-rustc}
command -v "${cargo%% *}" >/dev/null 2>&1 || fail "$cargo is not installed: $how"
command -v "$rustc" >/dev/null 2>&1 || fail "$rustc is not installed: $how"
# A proxy of rustup's may be there without a toolchain.
version=$("$rustc" --version 2>/dev/null) ||
    fail "$rustc does not run: rustup toolchain install stable, or $how"
found=$(echo "$version" | sed -n 's/^rustc \([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p')
major=${found% *} minor=${found#* }
least=${needed#*.}
if [ -n "$found" ] && { [ "$major" -lt "${needed%%.*}" ] ||
    { [ "$major" = "${needed%%.*}" ] && [ "$minor" -lt "${least%%.*}" ]; }; }; then
    fail "Rust $major.$minor is too old, $needed is needed: rustup update, or $how"
fi
# shellcheck disable=SC2086 # it may have options
$cargo --version >/dev/null 2>&1 || fail "$cargo does not run: $how"
# Who has told cargo of another linker needs none.
command -v cc >/dev/null 2>&1 || env | grep -q '^CARGO_TARGET_.*_LINKER=' ||
    [ -e "${CARGO_HOME:-${HOME-}/.cargo}/config.toml" ] ||
    fail 'cc is not installed, which Rust links with: apt-get install gcc libc6-dev'
