#!/bin/sh
# Pushes to a phone when a coding agent begins to wait or fails:
#
#     PUSH_URL=https://push.example/my-topic \
#         tongs-agents watch --exec push-to-phone.sh
#
# Takes one change as JSON on standard input. The service at PUSH_URL takes a
# message as the body of a POST and its title as a header, as ntfy does. Needs
# jq and curl.
set -eu

url=${PUSH_URL:-https://push.example/my-topic}

# Only the event with which the wait or the error began.
message=$(jq -r '
    def plain: gsub("[[:cntrl:]]"; " ") | .[:200];
    select(.event == "added" or .event == "changed") | .session
    | select((.status == "waiting" or .status == "error") and (.seen | not))
    | select(.status_ms == .ts_ms)
    | "\(.harness_id) \(.status): \(.repo)" , "\(.detail)"
    | plain')
[ -n "$message" ] || exit 0

title=$(printf '%s\n' "$message" | head -n 1)
printf '%s\n' "$message" | tail -n +2 |
    curl --silent --show-error --fail --max-time 8 \
        --header "Title: $title" --data-binary @- --output /dev/null -- "$url"
