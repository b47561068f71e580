#!/bin/sh
# Makes tongs_VERSION-1_ARCHITECTURE.deb from what was built, in OUT (default dist).
# Needs dpkg-deb.
# MAINTAINER names who is to be asked about the package.
set -eu
umask 022
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
command -v dpkg-deb >/dev/null 2>&1 || {
    echo "deb.sh: dpkg-deb is not installed: apt-get install dpkg" >&2
    exit 69
}
out=${OUT:-dist}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
maintainer=${MAINTAINER:-the tongs developers <tongs@packages.invalid>}
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
root=$dir/root
sh packaging/stage.sh "$root" /usr

doc=$root/usr/share/doc/tongs
mkdir -p "$doc" "$root/usr/share/lintian/overrides" "$root/DEBIAN"
{
    echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
    echo
    echo 'Files: *'
    echo "Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE)"
    echo 'License: Expat'
    sed -e '1,/^Copyright/d' -e 's/^$/./' -e 's/^/ /' LICENSE | sed -n '2,$p'
} >"$doc/copyright"
{
    echo "tongs ($version-1) unstable; urgency=low"
    echo
    echo '  * Made from the sources by packaging/deb.sh.'
    echo
    echo " -- $maintainer  $(date -u -R -d "@$when")"
} | gzip -9n >"$doc/changelog.Debian.gz"
install -m 644 README.md "$doc"
find "$root/usr/share/man" -type f -exec gzip -9n {} +
# The program is static so that it starts in half of the time, nobody has asked for
# a package, and a script for a harness is to be copied before it is run.
cat >"$root/usr/share/lintian/overrides/tongs" <<'END'
tongs: initial-upload-closes-no-bugs
tongs: script-not-executable [usr/share/tongs/hooks/cline]
tongs: statically-linked-binary [usr/bin/tongs]
END

cat >"$root/DEBIAN/control" <<END
Package: tongs
Version: $version-1
Section: utils
Priority: optional
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k -s "$root/usr" | cut -f 1)
Suggests: tmux, fzf, libnotify-bin
Description: says which coding agent works and which one waits for you
 Each coding agent, such as Claude Code, Codex or Gemini CLI, runs the hook of
 tongs at every step of its work; the hook writes one small record per session.
 Everything else reads these records: a table, a full screen, notices, a line
 for a prompt, and a way to the terminal where the agent waits.
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ]; then
    echo "tongs: hooks in the settings of agents stay and do nothing once it is gone;"
    echo "tongs: 'tongs-agents uninstall --all', run by each user before, takes them out."
fi
END
chmod 755 "$root/DEBIAN/prerm"
(cd "$root" && find usr -type f -exec md5sum {} + | sort -k 2 >DEBIAN/md5sums)
find "$root" -exec touch -h -d "@$when" {} +
mkdir -p "$out"
deb=$out/tongs_$version-1_$architecture.deb
SOURCE_DATE_EPOCH=$when dpkg-deb --root-owner-group --build "$root" "$deb.new" >/dev/null
mv "$deb.new" "$deb"
echo "$deb"
