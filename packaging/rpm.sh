#!/bin/sh
# Makes tongs-VERSION-1.MACHINE.rpm from what was built, in OUT (default dist). Needs
# rpmbuild.
# MAINTAINER names who is to be asked about the package. No page is published so far:
# the address is a placeholder.
set -eu
umask 022
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
command -v rpmbuild >/dev/null 2>&1 || {
    echo "rpm.sh: rpmbuild is not installed: apt-get install rpm, or dnf install rpm-build" >&2
    exit 69
}
out=${OUT:-dist}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
maintainer=${MAINTAINER:-the tongs developers <tongs@packages.invalid>}
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
sh packaging/stage.sh "$dir/root" /usr
mkdir -p "$dir/root/usr/share/licenses/tongs" "$dir/root/usr/share/doc/tongs"
install -m 644 LICENSE "$dir/root/usr/share/licenses/tongs"
install -m 644 README.md "$dir/root/usr/share/doc/tongs"
find "$dir/root/usr/share/man" -type f -exec gzip -9n {} +
find "$dir/root" -exec touch -h -d "@$when" {} +
# Its directories are those that no other package brings.
{
    (cd "$dir/root" && find usr \( -type f -o -type l \) | sed 's|^|/|')
    (cd "$dir/root" && find usr/share/tongs usr/share/doc/tongs usr/share/licenses/tongs -type d |
        sed 's|^|%dir /|')
} | sort >"$dir/files"
cat >"$dir/tongs.spec" <<END
Name: tongs
Version: $version
Release: 1
Summary: Says which coding agent works and which one waits for you
License: MIT
URL: https://tongs.invalid/
Packager: $maintainer
Group: Development/Tools
AutoReqProv: no
%global debug_package %{nil}
%global __os_install_post %{nil}

%description
Each coding agent, such as Claude Code, Codex or Gemini CLI, runs the hook of
tongs at every step of its work; the hook writes one small record per session.
Everything else reads these records: a table, a full screen, notices, a line
for a prompt, and a way to the terminal where the agent waits.

%install
cp -a "$dir/root/." "%{buildroot}"

%preun
if [ "\$1" = 0 ]; then
    echo "tongs: hooks in the settings of agents stay and do nothing once it is gone;"
    echo "tongs: 'tongs-agents uninstall --all', run by each user before, takes them out."
fi

%files -f $dir/files
%defattr(-,root,root)

%changelog
* $(LC_ALL=C date -u -d "@$when" '+%a %b %d %Y') $maintainer - $version-1
- Made from the sources by packaging/rpm.sh.
END
SOURCE_DATE_EPOCH=$when rpmbuild -bb --quiet --define "_topdir $dir/rpm" \
    --define "_rpmdir $dir/out" --define '_build_id_links none' \
    --define 'use_source_date_epoch_as_buildtime 1' --define '_buildhost tongs.invalid' "$dir/tongs.spec"
mkdir -p "$out"
for rpm in "$dir"/out/*/*.rpm; do
    mv "$rpm" "$out"
    echo "$out/${rpm##*/}"
done
