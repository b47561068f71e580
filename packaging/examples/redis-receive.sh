#!/bin/sh
# The sessions of many machines out of a stream of Redis, a record a line: the
# command of a bridge. Set up once, then run it:
#
#     tongs-agents bridge add fleet -- /usr/local/share/tongs/examples/redis-receive.sh STREAM
#     tongs-agents bridge run fleet
#
# Further words are options of redis-cli. It begins five minutes back: every
# session that lives was told of since.
set -eu
stream=$1
shift
set -- redis-cli "$@" --raw
now=$("$@" TIME | head -n 1)
last=$(((now - 300) * 1000))-0
while :; do
    # The stream's name, then for each line its id, its field and the record;
    # nothing where none came.
    lines=$("$@" XREAD COUNT 100 BLOCK 5000 STREAMS "$stream" "$last")
    [ -n "$lines" ] || continue
    last=$(printf '%s\n' "$lines" | awk 'NR % 3 == 2 { id = $0 } END { print id }')
    printf '%s\n' "$lines" | awk 'NR > 1 && NR % 3 == 1'
done
