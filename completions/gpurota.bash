# bash completion for gpurota                                              -*- shell-script -*-
#
# Commands, options, and the leases and GPUs that there are; behind `--` whatever the command itself
# completes. Silent when no daemon answers.

# Words that `gpurota __complete` knows, for the same daemon as the line.
_gpurota_names() {
  local i dir=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ "${COMP_WORDS[i]}" = --runtime-dir ] && [ -n "${COMP_WORDS[i + 1]:-}" ]; then
      dir=(--runtime-dir "${COMP_WORDS[i + 1]}")
    fi
  done
  "${COMP_WORDS[0]}" "${dir[@]}" __complete "$1" 2>/dev/null
}

_gpurota_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# The ids behind the last comma.
_gpurota_gpu_ids() {
  local current=$1 before=''
  case $current in *,*) before=${current%,*}, ;; esac
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_gpurota_names gpus)" -- "${current##*,}")
}

# `gpurota job …`: what to do, then the job, then what goes with it.
_gpurota_job() {
  local current=$1 action='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ "${COMP_WORDS[i]}" = job ]; then action=${COMP_WORDS[i + 1]}; fi
  done
  if [ "$action" = "$current" ]; then action=''; fi
  local define='--restart --output --env --env-file --workdir --after --gpus --gpu-ids --memory --soft-limit --swap --oversize --priority --quantum --note --as --timeout --wait --nonblock --memory-threshold --'
  case $action in
    '') _gpurota_words "add list show logs update start stop restart remove export apply --help" "$current" ;;
    add) _gpurota_words "$define" "$current" ;;
    update) _gpurota_words "$(_gpurota_names jobs) --user $define" "$current" ;;
    list) _gpurota_words '--user --json' "$current" ;;
    show) _gpurota_words "$(_gpurota_names jobs) --user --json" "$current" ;;
    logs) _gpurota_words "$(_gpurota_names jobs) --user --follow --lines" "$current" ;;
    remove) _gpurota_words "$(_gpurota_names jobs) --user --force" "$current" ;;
    export) _gpurota_words "$(_gpurota_names jobs) --user --with-secrets" "$current" ;;
    apply) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    *) _gpurota_words "$(_gpurota_names jobs) --user" "$current" ;;
  esac
}

_gpurota() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local common='--help --verbose --runtime-dir' command='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --)
        if [[ $command == @(run|job|filler) ]]; then
          # What follows is a command line of its own.
          if declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
          elif ((i + 1 == COMP_CWORD)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$current")
          else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
          fi
          return
        fi
        ;;
      --runtime-dir) i=$((i + 1)) ;;
      -*) ;;
      *) if [ -z "$command" ]; then command=${COMP_WORDS[i]}; fi ;;
    esac
  done
  case $previous in
    --runtime-dir)
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return
      ;;
    --gpu-ids | -i) _gpurota_gpu_ids "$current" && return ;;
    --restart) _gpurota_words 'no on-failure always' "$current" && return ;;
    --output) _gpurota_words 'file journal' "$current" && return ;;
    --lease) _gpurota_words "$(_gpurota_names leases)" "$current" && return ;;
    --priority) _gpurota_words 'high normal low' "$current" && return ;;
    --turns) _gpurota_words 'auto on off' "$current" && return ;;
    --quantum) _gpurota_words 'auto' "$current" && return ;;
    --by) _gpurota_words 'user group note gpu kind' "$current" && return ;;
    --env-file | --workdir) mapfile -t COMPREPLY < <(compgen -f -- "$current") && return ;;
    --after) _gpurota_words "$(_gpurota_names jobs)" "$current" && return ;;
    --env) mapfile -t COMPREPLY < <(compgen -e -- "$current") && return ;;
    --since | --days | -d | --memory | -m | --memory-threshold | --soft-limit | --capacity | --note | --gpus | -g | --for | --as | --wait | -w | --timeout | -t | --reason) return ;;
  esac
  case $command in
    '') _gpurota_words "run reserve status queue cancel explain drain undrain turns set ps release update events report doctor burn filler job reload version help $common --version" "$current" ;;
    run) _gpurota_words "-- --gpus --gpu-ids --memory --soft-limit --swap --oversize --priority --quantum --note --as --wait --nonblock --timeout --lease --filler --memory-threshold $common" "$current" ;;
    reserve) _gpurota_words "--gpus --gpu-ids --memory --soft-limit --swap --oversize --priority --quantum --for --note --as --force --wait --nonblock --short --memory-threshold $common" "$current" ;;
    queue) _gpurota_words "--json $common" "$current" ;;
    cancel) _gpurota_words "$(_gpurota_names requests) $common" "$current" ;;
    explain) _gpurota_words "$(_gpurota_names requests) $(_gpurota_names leases) $common" "$current" ;;
    drain) if [ "${current#-}" = "$current" ]; then _gpurota_gpu_ids "$current"; else _gpurota_words "--reason $common" "$current"; fi ;;
    undrain) if [ "${current#-}" = "$current" ]; then _gpurota_gpu_ids "$current"; else _gpurota_words "$common" "$current"; fi ;;
    status) _gpurota_words "--json --summary --watch --memory-threshold $common" "$current" ;;
    turns) _gpurota_words "--gpu-ids --json $common" "$current" ;;
    set) _gpurota_words "--gpu-ids --capacity --quantum --turns --reset $common" "$current" ;;
    doctor) _gpurota_words "--json $common" "$current" ;;
    events) _gpurota_words "--follow --since --lease --json $common" "$current" ;;
    report) _gpurota_words "--days --since --by --json --csv $common" "$current" ;;
    ps) _gpurota_words "$(_gpurota_names leases) --json $common" "$current" ;;
    release) _gpurota_words "$(_gpurota_names leases) --gpu-ids --all --all-users --yes $common" "$current" ;;
    update) _gpurota_words "$(_gpurota_names leases) --for --memory --soft-limit --priority --quantum --note $common" "$current" ;;
    help) _gpurota_words 'run reserve status queue cancel explain drain undrain turns set ps release update events report doctor burn filler job reload version' "$current" ;;
    job) _gpurota_job "$current" ;;
    filler) _gpurota_words "add list logs pause resume remove $(_gpurota_names fillers) --json --user --lines --gpu-ids --instances --memory --idle-after --grace --on-yield --env --env-file --workdir -- $common" "$current" ;;
    burn) _gpurota_words "--gpu-ids --memory --for --hold --self-test --json --help" "$current" ;;
    *) _gpurota_words "$common" "$current" ;;
  esac
}

complete -F _gpurota gpurota
