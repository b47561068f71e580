# Completions of tongs for bash. Commands and options are taken from the programs'
# own help at the moment of completion, sessions from the store.

# The options that a command's help names.
_tongs_options() {
    "$@" --help 2>/dev/null |
        sed -n 's/^  \(-.\), \(--[a-z-]*\).*/\1\n\2/p; s/^  \(--[a-z-]*\).*/\1/p'
}

# What stands for the value of an option in a command's usage; nothing where it
# takes none.
_tongs_value() {
    local option=$1
    shift
    "$@" --help 2>/dev/null | sed -n "1s/.*\[\{0,1\}$option <\([A-Z]*\).*/\1/p"
}

_tongs_harnesses() {
    tongs-agents install --list 2>/dev/null | sed 's/ .*//'
}

_tongs_sessions() {
    tongs-agents status -o short_id 2>/dev/null
}

# The words that may stand for the value of an option.
_tongs_values() {
    local option=$1 command=$2
    case $command$option in
        status--line) echo plain tmux ;;
        status--sort) echo attention status age repo ;;
        status-o | status--output)
            tongs-agents status -q -o '' 2>&1 | sed -n 's/.*the fields are //p' ;;
        monitor--notify) echo all waiting none ;;
        wait--until) echo present gone replied started running idle waiting error ended ;;
        lookup--format) echo record session-state ;;
        *--status) echo started running idle waiting error ended discovered ;;
        *--harness | record--agent) _tongs_harnesses; [ "$command" = status ] || echo other ;;
        install--agent | uninstall--agent) _tongs_harnesses ;;
        *) return 1 ;;
    esac
}

# The words that may be arguments of a command.
_tongs_arguments() {
    case $1 in
        show | ack | snooze | wait | focus) _tongs_sessions ;;
        schema) tongs-agents schema 2>/dev/null ;;
        *) return 1 ;;
    esac
}

_tongs_complete() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${1##*/} at=1 command= word
    COMPREPLY=()
    if [ "$program" = tongs ]; then
        if [ "$COMP_CWORD" = 1 ]; then
            word="$(tongs --list 2>/dev/null | sed -n 's/^tongs-\([a-z-]*\).*/\1/p') $(_tongs_options tongs)"
            mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
            return
        fi
        program=tongs-${COMP_WORDS[1]}
        at=2
    fi
    case $program in
        tongs-hook)
            [ "$COMP_CWORD" -gt "$at" ] ||
                mapfile -t COMPREPLY < <(compgen -W "$(_tongs_harnesses) $(_tongs_options tongs-hook)" -- "$current")
            return
            ;;
        tongs-agents)
            command=${COMP_WORDS[at]}
            if [ "$COMP_CWORD" = "$at" ]; then
                word=$(tongs-agents --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p')
                mapfile -t COMPREPLY < <(compgen -W "$word $(_tongs_options tongs-agents)" -- "$current")
                return
            fi
            set -- tongs-agents "$command"
            ;;
        *) set -- "$program" ;;
    esac
    # The words behind a command that is run are that command's.
    if [ "$command" = run ] && [ "$COMP_CWORD" -gt "$((at + 1))" ] && [[ $before != -?* || $before == -- ]]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$current")
        return
    fi
    if [[ $before == -* ]] && [ -n "$(_tongs_value "$before" "$@")" ]; then
        if word=$(_tongs_values "$before" "$command"); then
            # The last of several with commas.
            if [[ $before == -o || $before == --output || $before == --until ]] && [[ $current == *,* ]]; then
                mapfile -t COMPREPLY < <(compgen -P "${current%,*}," -W "$word" -- "${current##*,}")
            else
                mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
            fi
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        return
    fi
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_tongs_options "$@")" -- "$current")
    elif word=$(_tongs_arguments "$command"); then
        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
    elif [ "$program" = tongs-bridge-import ] || [ "$command" = run ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}

complete -F _tongs_complete tongs tongs-agents tongs-hook tongs-bridge-import
