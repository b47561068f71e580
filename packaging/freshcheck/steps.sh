# What both halves of freshcheck share; they source it. `report` is the file that
# keeps how each step ended.
# shellcheck shell=sh disable=SC2154
self=freshcheck

say() { printf '\n%s: %s\n' "$self" "$*"; }

# Runs one step: its exit status when it fails, its name, its command.
step() {
    status=$1 name=$2 since=$(date +%s)
    shift 2
    say "$name"
    if "$@"; then
        echo "$self: passed in $(($(date +%s) - since)) s: $name" | tee -a "$report"
    else
        echo "$self: FAILED after $(($(date +%s) - since)) s: $name" | tee -a "$report"
        exit "$status"
    fi
}
