#!/bin/sh
# The sessions of this machine into a stream of Redis, from which any other one
# takes them with redis-receive.sh. Leave it running:
#
#     redis-send.sh STREAM [OPTION-OF-REDIS-CLI ...]
#
# The stream keeps the last thousands of lines; each is a record as
# tongs-agents(1) export prints it. Who may write to it may say anything of any
# session in it: give it a password and TLS, as redis-cli(1) has them.
set -eu
stream=$1
shift
tongs-agents export --follow | while IFS= read -r line; do
    printf %s "$line" | redis-cli "$@" -x XADD "$stream" MAXLEN '~' 10000 '*' record >/dev/null
done
