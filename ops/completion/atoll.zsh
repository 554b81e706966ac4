#compdef atoll
# Completion of the `atoll` command in zsh: install this file as _atoll in a folder of $fpath. The
# program itself says what it offers: commands, options, their values, and names in the running
# cluster (ops/cli/completion.h).

_atoll() {
  local line
  local -a candidates
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :files) _files ;;
      :folders) _files -/ ;;
      # _describe separates a word from its description by a colon.
      *) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  if (( ${#candidates} )); then
    _describe -t values 'atoll' candidates
  fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _atoll "$@"
else
  compdef _atoll atoll
fi
