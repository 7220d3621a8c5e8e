# bash completion for gpurota-sim                                          -*- shell-script -*-
#
# Completes commands, machines and what `set` changes; after `--`, what the command itself
# completes.

_gpurota_sim() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} first='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --)
        if declare -F _command_offset >/dev/null; then
          _command_offset $((i + 1))
        else
          mapfile -t COMPREPLY < <(compgen -c -- "$current")
        fi
        return
        ;;
      --dir) i=$((i + 1)) ;;
      -*) ;;
      *) if [ -z "$first" ]; then first=${COMP_WORDS[i]}; fi ;;
    esac
  done
  if [ "$previous" = --dir ]; then
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
    return
  fi
  case $first in
    '') mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$current"
      compgen -W "list show set --dir --shared --show-unsupported --help --version $(
        "${COMP_WORDS[0]}" list 2>/dev/null | awk '{print $1}')" -- "$current") ;;
    set)
      compopt -o nospace 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -S = -W "release_delay_ms hold_for_children
        park_delay_ms host_budget
        $(printf 'gpu0.%s ' fail_allocation lost flip_bits copy_rate hidden hide_processes \
          utilisation temperature power_w compute_mode)" -- "$current")
      ;;
    list | show) mapfile -t COMPREPLY < <(compgen -W --dir -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W '--dir --shared --' -- "$current") ;;
  esac
}

complete -F _gpurota_sim gpurota-sim
