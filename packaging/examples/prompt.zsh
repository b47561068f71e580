# Who asks for you, on a line before the prompt of zsh, and no line when nobody
# does. At the end of ~/.zshrc:
#
#     . /usr/local/share/tongs/examples/prompt.zsh
#
# The program itself prints the line. It is no part of PROMPT, so that the shell
# expands nothing in it.
tongs_prompt() {
    emulate -L zsh
    if command -v tongs-agents >/dev/null; then
        tongs-agents status --line plain 2>/dev/null
    fi
}

autoload -Uz add-zsh-hook
add-zsh-hook precmd tongs_prompt
