# Completion of the `atoll` command in bash: source this file, or install it as
# /usr/share/bash-completion/completions/atoll. The program itself says what it offers: commands,
# options, their values, and names in the running cluster (ops/cli/completion.h).

_atoll() {
  local word=${COMP_WORDS[COMP_CWORD]} line
  COMPREPLY=()
  [[ $word == = ]] && word=
  while IFS= read -r line; do
    case $line in
      :files | :folders)
        # Outside of a completion, compopt reports an error.
        compopt -o filenames 2>/dev/null
        local kind=-f
        [[ $line == :folders ]] && kind=-d
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen $kind -- "$word")
        ;;
      *) COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _atoll atoll
