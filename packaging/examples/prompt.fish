# Who asks for you, on a line before the prompt of fish, and no line when nobody
# does. In ~/.config/fish/config.fish:
#
#     source /usr/local/share/tongs/examples/prompt.fish
#
# The program itself prints the line, so that the shell expands nothing in it.
function tongs_prompt --on-event fish_prompt
    if command -q tongs-agents
        tongs-agents status --line plain 2>/dev/null
    end
end
