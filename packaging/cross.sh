#!/bin/sh
# Builds the static program for the other processor of Linux, into
# build/PROCESSOR, and checks that the sources hold for macOS and FreeBSD, whose
# programs can be linked on such machines only. What cannot be had is left out
# with a reason.
#   cross.sh CARGO
set -eu
cd "$(dirname "$0")/.."
cargo=${1:-cargo}
rustc=${RUSTC:-rustc}
host=$("$rustc" -vV | sed -n 's/^host: //p')

# Whether a target's standard library is here, or can be.
can_have() {
    [ ! -d "$("$rustc" --print sysroot)/lib/rustlib/$1/lib" ] || return 0
    if command -v rustup >/dev/null 2>&1 && rustup target add "$1" >/dev/null 2>&1; then return 0; fi
    echo "skipped: $1: Rust's standard library for it cannot be had here"
    return 1
}

case $host in
    x86_64-*) other=aarch64 ;;
    *) other=x86_64 ;;
esac
target=$other-unknown-linux-musl
if can_have "$target"; then
    "$cargo" build --release --locked --target "$target" \
        --config "target.$target.rustflags=$(sh packaging/flags.sh "$target")"
    mkdir -p "build/$other"
    cp "target/$target/release/tongs" "build/$other/tongs.new"
    mv "build/$other/tongs.new" "build/$other/tongs"
    for name in tongs-hook tongs-agents tongs-bridge-import; do
        ln -sf tongs "build/$other/$name"
    done
    echo "built: $target: build/$other/tongs, $(wc -c <"build/$other/tongs") bytes"
fi

for target in aarch64-apple-darwin x86_64-apple-darwin x86_64-unknown-freebsd; do
    can_have "$target" || continue
    "$cargo" check --quiet --locked --workspace --lib --bins --target "$target"
    # The layouts that are declared by hand are compared when this is compiled.
    "$cargo" check --quiet --locked --test layouts --target "$target"
    echo "checked: $target: types and layouts; nothing was linked or run"
done
