#!/bin/sh
# Checks a build against the program whose record format it keeps:
#   run.sh BINARY [SEED [COUNT]]
# That program, claude-fleet-monitor 0.9.1, is installed from PyPI into a
# virtual environment that is thrown away. REFERENCE_VENV names one that has it
# already, PYTHON the python to make one with. See check.py.
set -eu
version=0.9.1

die() { echo "interop: $*" >&2; exit 1; }

[ $# -ge 1 ] && [ -x "$1" ] && [ -f "$1" ] || die "usage: run.sh BINARY [SEED [COUNT]]"
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
venv=${REFERENCE_VENV:-}
if [ -z "$venv" ]; then
    python=${PYTHON:-python3}
    command -v "$python" >/dev/null 2>&1 ||
        die "python3 is missing: install it (Debian: apt-get install python3 python3-venv)"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    venv=$scratch/venv
    "$python" -m venv "$venv" >"$scratch/log" 2>&1 || {
        cat "$scratch/log" >&2
        die "cannot make a virtual environment: install venv and ensurepip" \
            "(Debian: apt-get install python3-venv)"
    }
    # What it depends on is for its screens, and nothing here shows one.
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        "claude-fleet-monitor==$version" ||
        die "cannot install claude-fleet-monitor $version: is PyPI within reach?" \
            "REFERENCE_VENV can name a virtual environment that has it"
fi
found=$("$venv/bin/python" -c \
    'import importlib.metadata as m; print(m.version("claude-fleet-monitor"))' 2>/dev/null) || found=none
[ "$found" = "$version" ] || die "'$venv' has claude-fleet-monitor $found, not $version"
"$venv/bin/python" "$here/check.py" "$@"

# The server for agents, with the official client of its protocol.
client=2.3.0
if [ -n "${scratch:-}" ]; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "mcp==$client" ||
        die "cannot install mcp $client: is PyPI within reach?"
elif ! "$venv/bin/python" -c 'import mcp' 2>/dev/null; then
    echo "skipped the client of the Model Context Protocol: '$venv' has none" >&2
    exit 0
fi
"$venv/bin/python" "$here/client.py" "$1"
