#!/bin/bash
# imports.sh DIST: tests memory that one process imports from another, on a real GPU. The first
# steps show, without gpurota, how much each process holds according to NVML and cuMemGetInfo, and
# what a descriptor alone keeps. The other steps start a daemon, and check that an import counts for
# its importer, is refused beyond the importer's limit, is not charged twice within a lease, and is
# credited when either side ends. Needs cc; at most 8 GiB of device memory. Exits with the number of
# steps that failed.
# shellcheck disable=SC2317,SC2154  # functions are called by name; steps.bash sets $failed
set -uo pipefail
dist=$(readlink -f "${1:?usage: imports.sh DIST}")
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR
. "$here/steps.bash"
work=$(mktemp -d)
cc -O1 -w -o "$work/imports" "$here/imports.c" -ldl || exit 99
declare -A TO FROM PID
daemon=''
cleanup() {
  for pid in "${PID[@]}"; do kill -9 "$pid" 2> /dev/null; done
  if [ -n "$daemon" ]; then kill "$daemon" && wait "$daemon"; fi 2> /dev/null
  if ((failed)); then tail -n 20 "$work"/*.err "$work/gpurotad.log"; fi 2> /dev/null
  rm -rf "$work"
}
trap cleanup EXIT

start() { # a process that carries out what `ask NAME …` says
  local name=$1 to from
  shift
  mkfifo "$work/to.$name" "$work/from.$name"
  "$@" < "$work/to.$name" > "$work/from.$name" 2> "$work/$name.err" &
  PID[$name]=$!
  exec {to}> "$work/to.$name" {from}< "$work/from.$name"
  TO[$name]=$to FROM[$name]=$from
  [ "$(answer "$name")" = ready ]
}
answer() {
  local line
  read -r -t 60 -u "${FROM[$1]}" line || line=gone
  echo "$line"
}
ask() {
  echo "$2" >&"${TO[$1]}"
  answer "$1"
}
told() { # told NAME WORDS ANSWER
  local said
  said=$(ask "$1" "$2")
  [ "$said" = "$3" ] || { say "" "$1 says '$said' to '$2', not '$3'" && return 1; }
}
finish() { # ends the process in an orderly way
  echo end >&"${TO[$1]}"
  wait "${PID[$1]}" 2> /dev/null
  forget "$1"
}
forget() {
  local to=${TO[$1]} from=${FROM[$1]}
  exec {to}>&- {from}<&-
  rm -f "$work/to.$1" "$work/from.$1"
  unset "PID[$1]" "TO[$1]" "FROM[$1]"
}
end_by_kill() {
  kill -9 "${PID[$1]}"
  wait "${PID[$1]}" 2> /dev/null
  forget "$1"
}
path_of() { # the path or the digits that the process answers
  local said
  said=$(ask "$1" "$2")
  [[ $said == 0\ * ]] && echo "${said#* }"
}
seen() { # prints NVML's figure for each process
  local text=$1 name
  shift
  printf '%-76s' "$text"
  for name in "$@"; do printf ' %s=pid %s' "$name" "$(ask "$name" pid)"; done
  printf ' | used %s\n' "$(ask "$1" nvml)"
}

echo "-- without gpurota: MiB in use on the GPU, and of each process by NVML"
bare() { start "$1" "$work/imports"; }
step "two processes have contexts" eval 'bare maker && bare other'
seen "contexts only" maker other
step "1024 MiB that can be exported" told maker "make 1024" 0
seen "made by the maker" maker other
path=$(path_of maker export)
held=$(path_of other "hold $path")
step "the other has a duplicate of the descriptor" test -n "$held"
seen "exported; the other holds a descriptor" maker other
say "" "its lock: $(ask other key)"
told maker close 0
told maker release 0
seen "the maker has released it: a descriptor alone keeps it" maker other
finish maker
seen "the maker has ended, too" other
bare third
step "it is still to be imported from the descriptor" told third "take $held" 0
seen "imported by a third, not mapped" other third
step "mapped" told third "map 1024" 0
seen "and mapped there" other third
told other drop 0
seen "the descriptor is closed: the third alone has it" other third
told third unmap 0
seen "unmapped, the handle is there" other third
told third release 0
seen "released" other third
step "1024 MiB by cuMemAlloc" told other "alloc 1024" 0
hex=$(path_of other handle)
step "opened by its handle" told third "open $hex" 0
seen "other made it, third has it open" other third
end_by_kill other
seen "its maker is killed" third
told third shut 0
seen "closed" third
bare maker
step "512 MiB of a pool that can be exported" told maker "pool 512" 0
seen "a pool of the maker's" maker third
step "the pool is imported" told third "poolin $(path_of maker poolpath)" 0
step "and memory of it" told third "piecein $(path_of maker piece)" 0
seen "memory of the pool, imported" maker third
end_by_kill maker
seen "the pool's maker is killed" third
end_by_kill third
sleep 1

echo "-- with gpurota"
export GPUROTA_RUNTIME_DIR=$work/run
"$dist/bin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" --config /dev/null \
  --preload "$dist/lib/libgpurota.so" \
  > "$work/gpurotad.log" 2>&1 &
daemon=$!
step "a daemon" within 20 "$dist/bin/gpurota" status
slice() { start "$1" "$dist/bin/gpurota" run --memory "$2" -- "$work/imports"; }
free_of() { ask "$1" info | cut -d' ' -f1; }
is_free() { # is_free NAME MIB: within 8 MiB, because contexts grow a little
  local now
  now=$(free_of "$1")
  ((now >= $2 - 8 && now <= $2 + 8)) || { say "" "$1 has $now MiB free, not $2" && return 1; }
}
lease_of() {
  "$dist/bin/gpurota" status --json |
    python3 -c "import json,sys; print([l['lease_id'] for l in json.load(sys.stdin)['leases']][$1])"
}

step "the main job: memory that only descriptors keep" eval 'slice maker 3G && slice other 3G'
before=$(free_of other)
taken=0
for ((i = 0; i < 12; ++i)); do
  told maker "make 512" 0 || break
  path=$(path_of maker export)
  [ "$(ask other "take $path")" = 0 ] && taken=$((taken + 1))
  told maker close 0
  told maker release 0
done
step "no more of it than its limit is taken ($taken of 12 times 512 MiB, $before MiB were free)" \
  test "$taken" = $((before / 512))
step "which it is told" is_free other $((before - taken * 512))
step "and why, once" test \
  "$(grep -c '^gpurota: .*of GPU memory of another process' "$work/other.err")" = 1
end_by_kill other
step "all of it is back when it is killed" eval 'sleep 1; slice other 3G; is_free other '"$before"
step "a fresh import" told maker "make 1024" 0
path=$(path_of maker export)
step "is charged to its importer" eval \
  'told other "take $path" 0 && is_free other '$((before - 1024))
own=$(free_of maker)
step "beyond the limit it is refused" told other "alloc 2048" 2
step "and its maker has it still" eval 'told maker "map 1024" 0 && is_free maker '"$own"
told maker unmap 0
told maker close 0
end_by_kill maker
step "its maker is killed: it stays charged to its importer" is_free other $((before - 1024))
step "until that lets it go" eval 'told other release 0 && is_free other '"$before"
slice maker 3G
step "cuIpcOpenMemHandle is charged" eval \
  'told maker "alloc 1024" 0 && told other "open $(path_of maker handle)" 0 &&
  is_free other '$((before - 1024))
step "and credited" eval 'told other shut 0 && is_free other '"$before"
step "refused beyond the limit" eval \
  'told other "alloc 2048" 0 && told other "open $(path_of maker handle)" 2 && told other free 0'
step "memory of an imported pool is charged" eval \
  'told maker "pool 512" 0 && told other "poolin $(path_of maker poolpath)" 0 &&
  told other "piecein $(path_of maker piece)" 0 && is_free other '$((before - 512))
step "and credited" eval 'told other piecefree 0 && is_free other '"$before"
step "external memory is charged" eval \
  'told maker "make 512" 0 && told other "external $(path_of maker export) 512" 0 &&
  is_free other '$((before - 512))
step "and credited" eval 'told other destroy 0 && is_free other '"$before"
finish maker
finish other

step "two processes of one lease" eval \
  '"$dist/bin/gpurota" reserve --memory 3G --for 10m > "$work/reserved"'
lease=$(lease_of 0)
of_lease() { start "$1" "$dist/bin/gpurota" run --lease "$lease" -- "$work/imports"; }
of_lease maker
of_lease other
before=$(free_of other)
step "1024 MiB, exported" told maker "make 1024" 0
path=$(path_of maker export)
step "its import is free" eval 'told other "take $path" 0 && is_free other '$((before - 1024))
told maker close 0
step "and still counted when its maker has let it go" eval \
  'told maker release 0 && is_free maker '$((before - 1024))
step "until the other has" eval 'told other release 0 && is_free maker '"$before"
step "the same by cuIpcOpenMemHandle" eval \
  'told maker "alloc 1024" 0 && told other "open $(path_of maker handle)" 0 &&
  is_free other '$((before - 1024))
echo "$failed failed"
exit "$failed"
