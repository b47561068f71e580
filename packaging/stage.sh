#!/bin/sh
# Installs what was built into an empty directory, for a package, by `make install`
# and nothing else: there is no second list of files. Prints nothing.
# Usage: stage.sh DIRECTORY PREFIX
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
umask 022
mkdir -p "$1"
DESTDIR=$1 ${MAKE:-make} -s -C "$top" install "prefix=$2" >/dev/null
