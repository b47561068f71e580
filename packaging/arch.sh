#!/bin/sh
# Makes tongs-VERSION-1-MACHINE.pkg.tar.zst by packaging/arch/PKGBUILD, in OUT (default
# dist), of what stands committed. Needs makepkg, which does not run as root; MAKEPKG
# may have options, such as 'makepkg --nocheck'.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
makepkg=${MAKEPKG:-makepkg}
command -v "${makepkg%% *}" >/dev/null 2>&1 || {
    echo "arch.sh: makepkg is not installed: pacman -S base-devel" >&2
    exit 69
}
[ "$(id -u)" != 0 ] || {
    echo "arch.sh: makepkg does not run as root: run 'make arch' as another user" >&2
    exit 69
}
mkdir -p "${OUT:-dist}"
out=$(cd "${OUT:-dist}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
tarball=$(${MAKE:-make} -s dist)
cp packaging/arch/tongs.install "$tarball" "$dir"
sed "s/SKIP/$(cut -d ' ' -f 1 "$tarball.sha256")/" packaging/arch/PKGBUILD >"$dir/PKGBUILD"
cd "$dir"
mkdir out
# shellcheck disable=SC2086 # words
PKGDEST=$dir/out SRCDEST=$dir BUILDDIR=$dir/work $makepkg >&2
for package in out/*.pkg.tar*; do
    mv "$package" "$out"
    echo "$out/${package##*/}"
done
