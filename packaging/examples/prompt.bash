# shellcheck shell=bash
# Who asks for you, on a line before the prompt of bash, and no line when nobody
# does. At the end of ~/.bashrc:
#
#     . /usr/local/share/tongs/examples/prompt.bash
#
# The program itself prints the line. It is no part of PS1, so that the shell
# expands nothing in it.
tongs_prompt() {
    local status=$?
    if command -v tongs-agents >/dev/null; then
        tongs-agents status --line plain 2>/dev/null
    fi
    return "$status"
}

case ${PROMPT_COMMAND[*]-} in
*tongs_prompt*) ;;
*) PROMPT_COMMAND=tongs_prompt${PROMPT_COMMAND:+;$PROMPT_COMMAND} ;;
esac
