# Completions of tongs for fish. Commands and options are taken from the programs'
# own help at the moment of completion, sessions from the store.

# The words of the command line before the cursor, with `tongs agents` as the name
# that it stands for.
function __tongs_words
    set -l words (commandline -opc)
    set words[1] (basename $words[1])
    if test $words[1] = tongs -a (count $words) -gt 1
        echo tongs-$words[2]
        set -e words[1..2]
    end
    test (count $words) = 0; or printf '%s\n' $words
end

# The program, and its command where it has some, as a call.
function __tongs_call
    set -l words (__tongs_words)
    if test $words[1] = tongs-agents -a (count $words) -gt 1
        printf '%s\n' $words[1..2]
    else
        echo $words[1]
    end
end

function __tongs_help
    type -q $argv[1]; and $argv --help 2>/dev/null
end

function __tongs_commands
    set -l words (__tongs_words)
    if test (count $words) = 1
        switch $words[1]
            case tongs
                tongs --list 2>/dev/null | sed -n 's/^tongs-\([a-z-]*\) *\(.*\)/\1\t\2/p'
            case tongs-agents
                __tongs_help tongs-agents | sed -n 's/^  \([a-z][a-z]*\)  *\(.*\)/\1\t\2/p'
            case tongs-hook
                __tongs_harnesses
        end
    end
end

# Whether the call is this one: a program, or a program and its command.
function __tongs_is
    test (__tongs_call | string join ' ') = "$argv"
end

# Gives a call the options that its help names.
function __tongs_options
    set -l value (__tongs_help $argv | head -n 1)
    __tongs_help $argv | string match -r '^  -.*' | while read -l line
        set -l long (string match -rg -- '--([a-z-]+)' $line)
        set -l short (string match -rg -- '^  -(.),' $line)
        set -l option -l $long -d (string replace -r -- '^  .*--[a-z-]+ +' '' $line)
        test -z "$short"; or set -a option -s $short
        for name in --$long -$short
            string match -rq -- "\\[?$name <[A-Z]" $value; and set -a option -x -a '(__tongs_values)'
        end
        for program in $argv[1] tongs
            complete -c $program -n "__tongs_is $argv" $option
        end
    end
end

function __tongs_harnesses
    tongs-agents install --list 2>/dev/null | sed 's/ .*//'
end

function __tongs_sessions
    tongs-agents status -o short_id,status,harness_id,repo 2>/dev/null | sed 's/\t/ /2g'
end

function __tongs_values
    set -l words (__tongs_words)
    switch "$words[2]$words[-1]"
        case status--line
            printf '%s\n' plain tmux
        case status--sort
            printf '%s\n' attention status age repo
        case status-o status--output
            __fish_complete_list , __tongs_fields
        case monitor--notify
            printf '%s\n' all waiting none
        case wait--until
            __fish_complete_list , __tongs_untils
        case lookup--format
            printf '%s\n' record session-state
        case '*--status'
            printf '%s\n' started running idle waiting error ended discovered
        case status--harness install--agent uninstall--agent
            __tongs_harnesses
        case '*--harness' record--agent
            __tongs_harnesses
            echo other
        case '*'
            __fish_complete_path (commandline -ct)
    end
end

function __tongs_fields
    tongs-agents status -q -o '' 2>&1 | sed -n 's/.*the fields are //p' | string split ' '
end

function __tongs_untils
    printf '%s\n' present gone replied started running idle waiting error ended
end

function __tongs_arguments
    set -l words (__tongs_words)
    switch "$words[1] $words[2]"
        case 'tongs-agents show' 'tongs-agents ack' 'tongs-agents snooze' 'tongs-agents wait' 'tongs-agents focus'
            __tongs_sessions
        case 'tongs-agents schema'
            tongs-agents schema 2>/dev/null
        case 'tongs-agents run'
            __fish_complete_command
        case 'tongs-bridge-import *'
            __fish_complete_path (commandline -ct)
    end
end

for program in tongs tongs-agents tongs-hook tongs-bridge-import
    complete -c $program -f -a '(__tongs_commands; __tongs_arguments)'
    __tongs_options $program
end
for command in (__tongs_help tongs-agents | string match -rg '^  ([a-z]+) ')
    __tongs_options tongs-agents $command
end
