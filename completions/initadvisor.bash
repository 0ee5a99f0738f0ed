# Completion for bash-completion(1): asks initadvisor itself, which answers "type,value" lines.

_initadvisor() {
    local answer type value
    COMPREPLY=()
    # Words that hold one another (--image=FILE) come apart in COMP_WORDS; env, as arrays are not
    # exported.
    answer=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" \
        _INITADVISOR_COMPLETE=bash_complete "$1" 2>/dev/null) || return
    while IFS=, read -r type value; do
        case $type in
        plain) COMPREPLY+=("$value") ;;
        file) compopt -o default ;;
        dir) compopt -o dirnames ;;
        esac
    done <<<"$answer"
}

complete -o nosort -F _initadvisor initadvisor
