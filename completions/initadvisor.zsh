#compdef initadvisor
# Asks initadvisor itself, which answers three lines for each word: type, value, description.

local -a answer plain described
local kind value description

answer=("${(@f)$(
    env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \
        _INITADVISOR_COMPLETE=zsh_complete ${words[1]} 2>/dev/null
)}")
for kind value description in $answer; do
    case $kind in
        plain)
            if [[ $description == _ ]]; then
                plain+=($value)
            else
                described+=("${value//:/\\:}:$description")
            fi
            ;;
        file) _files ;;
        dir) _files -/ ;;
    esac
done
(( $#described )) && _describe -V initadvisor described
(( $#plain )) && compadd -V values -a plain
