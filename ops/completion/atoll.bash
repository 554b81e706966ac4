# Completion of the `atoll` command in bash: source this file, or install it as
# /usr/share/bash-completion/completions/atoll. It reads `atoll ... --help`, so it knows what the
# installed program knows.

_atoll() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  case $previous in
    -c | --config | --json | --input-file | --schema | --python)
      # `status --json` and the like take no file: then an option may follow.
      if [[ $word != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      [[ ${#COMPREPLY[@]} -gt 0 ]] && return
      ;;
    --isolation)
      mapfile -t COMPREPLY < <(compgen -W "serializable snapshot snapshot_read_only" -- "$word")
      return
      ;;
    --acknowledge)
      mapfile -t COMPREPLY < <(compgen -W "durable visible" -- "$word")
      return
      ;;
    --key-format)
      mapfile -t COMPREPLY < <(compgen -W "text hex u8 u16 u32 u64" -- "$word")
      return
      ;;
    --value-format)
      mapfile -t COMPREPLY < <(compgen -W \
        "text hex json i8 i16 i32 i64 u8 u16 u32 u64 f32 f64" -- "$word")
      return
      ;;
    --format)
      mapfile -t COMPREPLY < <(compgen -W "csv parquet" -- "$word")
      return
      ;;
    --mode)
      mapfile -t COMPREPLY < <(compgen -W "insert upsert" -- "$word")
      return
      ;;
    --on-error)
      mapfile -t COMPREPLY < <(compgen -W "stop skip" -- "$word")
      return
      ;;
    --type)
      if [[ ${COMP_WORDS[1]} == kv ]]; then
        mapfile -t COMPREPLY < <(compgen -W "i32 i64 u32 u64 f64" -- "$word")
        return
      fi
      mapfile -t COMPREPLY < <(compgen -W "array mastertree sequential" -- "$word")
      return
      ;;
    --durability)
      mapfile -t COMPREPLY < <(compgen -W "durable off measure" -- "$word")
      return
      ;;
    --workload)
      mapfile -t COMPREPLY < <(compgen -W "A B C D E F silor" -- "$word")
      return
      ;;
    --distribution)
      mapfile -t COMPREPLY < <(compgen -W "uniform zipfian latest" -- "$word")
      return
      ;;
    --data-dir | --directory | --to)
      mapfile -t COMPREPLY < <(compgen -d -- "$word")
      return
      ;;
    --storage)
      [[ ${COMP_WORDS[1]} == wal ]] && return  # an id or a name, which the program does not list
      mapfile -t COMPREPLY < <(compgen -W "mastertree array" -- "$word")
      return
      ;;
    --backend)
      mapfile -t COMPREPLY < <(compgen -W "posix pmem null" -- "$word")
      return
      ;;
    --insert-order)
      mapfile -t COMPREPLY < <(compgen -W "hashed ordered" -- "$word")
      return
      ;;
    check | show)
      if [[ $word != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
      fi
      ;;
  esac

  # The commands that the line has chosen so far: the words before the first option.
  local commands=() index
  for ((index = 1; index < COMP_CWORD; ++index)); do
    [[ ${COMP_WORDS[index]} == -* ]] && break
    commands+=("${COMP_WORDS[index]}")
  done
  local help
  help=$("${COMP_WORDS[0]}" "${commands[@]}" --help 2>/dev/null)

  local choices
  if [[ $word == -* ]]; then
    choices=$(grep -oE '(^  |,)--?[a-z][a-z-]*' <<<"$help" | tr -d ' ,')
  else
    choices=$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$help")
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}

complete -o default -F _atoll atoll
