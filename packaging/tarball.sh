#!/bin/sh
# Makes tongs-VERSION-MACHINE.tar.gz in OUT (default dist): the static program with all
# that belongs to it below `tongs-VERSION`, for a prefix, and its checksum. The same
# sources make the same bytes.
set -eu
umask 022
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
out=${OUT:-dist}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=tongs-$version-$(uname -m)
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
sh packaging/stage.sh "$dir/root" /usr/local
mv "$dir/root/usr/local" "$dir/tongs-$version"
install -m 644 LICENSE README.md "$dir/tongs-$version"
mkdir -p "$out"
tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$when" \
    -cf - "tongs-$version" | gzip -9n >"$out/$name.tar.gz.new"
mv "$out/$name.tar.gz.new" "$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$out/$name.tar.gz"
