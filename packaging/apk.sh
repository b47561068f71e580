#!/bin/sh
# Makes the packages of packaging/alpine/APKBUILD, in OUT (default dist), of what stands
# committed. Needs abuild and a key of it (abuild-keygen -a -i).
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
command -v abuild >/dev/null 2>&1 || {
    echo "apk.sh: abuild is not installed: apk add alpine-sdk" >&2
    exit 69
}
mkdir -p "${OUT:-dist}"
out=$(cd "${OUT:-dist}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
tarball=$(${MAKE:-make} -s dist)
mkdir "$dir/tongs"
cp packaging/alpine/* "$tarball" "$dir/tongs"
cd "$dir/tongs"
abuild checksum >&2
REPODEST=$dir/out abuild -r >&2
find "$dir/out" -name '*.apk' | while IFS= read -r package; do
    mv "$package" "$out"
    echo "$out/${package##*/}"
done
