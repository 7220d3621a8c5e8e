# Programs that share memory (tests/interposer/ipc_probe.cpp), and the commands to them.
# shellcheck shell=bash

declare -gA TO FROM

# start NAME COMMAND…: starts a process that carries out what `ask NAME …` says.
start() {
  local name=$1 to from
  shift
  mkfifo "to.$name" "from.$name"
  env GPUROTA_DEBUG="$E2E_DIR/$name.debug" "$@" <"to.$name" >"from.$name" 2>"$name.err" 3>&- &
  BACKGROUND+=($!)
  exec {to}>"to.$name" {from}<"from.$name"
  TO[$name]=$to FROM[$name]=$from
  [ "$(answer "$name")" = ready ]
}
answer() {
  local line
  read -r -t "$PATIENCE" -u "${FROM[$1]}" line || { cat "$1.err" && return 1; }
  echo "$line"
}
ask() {
  echo "$2" >&"${TO[$1]}"
  answer "$1"
}
# told NAME WORDS ANSWER: NAME must answer the command WORDS with ANSWER.
told() {
  local said
  said=$(ask "$1" "$2")
  [ "$said" = "$3" ] || { echo "$1 says '$said' to '$2', not '$3'" && return 1; }
}
# handle_of NAME: sets HANDLE to a handle of 96 MiB of NAME's memory, in which all words are 7.
handle_of() {
  told "$1" 'alloc 96' CUDA_SUCCESS
  told "$1" 'set 7' CUDA_SUCCESS
  HANDLE=$(ask "$1" handle)
  [[ $HANDLE == CUDA_SUCCESS\ * ]]
  HANDLE=${HANDLE#* }
}
