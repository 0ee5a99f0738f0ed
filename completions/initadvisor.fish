# Asks initadvisor itself, which answers "type,value", a tab and a description for each word.

function __initadvisor_complete
    set -l answer (env COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) \
        _INITADVISOR_COMPLETE=fish_complete initadvisor 2>/dev/null)
    for line in $answer
        set -l word (string split -m 1 , -- $line)
        switch $word[1]
            case plain
                echo -- $word[2]
            case file
                __fish_complete_path (commandline -t)
            case dir
                __fish_complete_directories (commandline -t)
        end
    end
end

complete --command initadvisor --no-files --arguments '(__initadvisor_complete)'
