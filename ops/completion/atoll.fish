# Completion of the `atoll` command in fish: install this file in
# /usr/share/fish/vendor_completions.d. The program itself says what it offers: commands, options,
# their values, and names in the running cluster (ops/cli/completion.h).

function __atoll_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --current-token --cut-at-cursor)
    for line in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$word"
            case ':folders'
                __fish_complete_directories "$word"
            case '*'
                echo $line
        end
    end
end

complete --command atoll --no-files --arguments '(__atoll_complete)'
