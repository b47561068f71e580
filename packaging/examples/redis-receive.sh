#!/bin/sh
# The sessions of many machines out of a stream of Redis, a record a line: the
# command of a bridge. Set up once, then run it:
#
#     tongs-agents bridge add fleet -- /usr/local/share/tongs/examples/redis-receive.sh STREAM
#     tongs-agents bridge run fleet
#
# Further words are options of redis-cli, which must be 7 or newer; jq(1) takes its
# answers apart, for who writes to the stream may write anything. It begins five
# minutes back: every session that lives was told of since.
set -eu
stream=$1
shift
command -v jq >/dev/null || { echo 'redis-receive.sh: jq is not installed' >&2; exit 69; }
set -- redis-cli -e --json "$@"
now=$("$@" TIME | jq -r '.[0]')
last=$(((now - 300) * 1000))-0
while :; do
    # By the stream's name its entries, each an id and its fields with their values.
    entries=$("$@" XREAD COUNT 100 BLOCK 5000 STREAMS "$stream" "$last")
    [ "$entries" != null ] || continue
    # An entry that is no line is passed over.
    printf '%s\n' "$entries" | jq -r '.[][] | .[1][1] | strings | select(test("\n") | not)'
    last=$(printf '%s\n' "$entries" | jq -r '[.[][] | .[0]] | last')
done
