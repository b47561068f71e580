#!/bin/sh
@MARKER@
# Cline takes a JSON document for an answer; this one changes nothing.
echo '{"cancel":false}'
[ ! -x @HOOK@ ] || exec @HOOK@ cline @EVENT@ >/dev/null 2>&1
cat >/dev/null
