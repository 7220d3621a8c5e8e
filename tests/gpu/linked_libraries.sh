#!/bin/bash
# linked_libraries.sh GPUROTA [RESULTS_DIR]: tests C++ programs linked to NVIDIA's libraries, shared
# and static, with the driver linked before and after them. Each is held to 8 GiB, and two of each
# take turns. Prints one line for each; exits with the number of programs that failed. A library
# that this machine does not have is reported as skipped.
# shellcheck disable=SC2317  # the checks are called by name
set -uo pipefail
gpurota=${1:?usage: linked_libraries.sh GPUROTA [RESULTS_DIR]}
results=${2:-$(mktemp -d)}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 built=()

site=$(python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2> /dev/null)
mapfile -t roots < <(printf '%s\n' "$site" /usr/local/cuda /usr | grep . | sort -u)
find_file() {
  find -L "${roots[@]}" -maxdepth 5 -name "$1" -not -path '*/stubs/*' 2> /dev/null | sort |
    head -n 1
}

# make NAME DEFINE HEADER LIBRARY…: LIBRARY is a file pattern, or an option of nvcc.
make() {
  local name=$1 define=$2 header options=() file
  header=$(find_file "$3")
  shift 3
  if [ -z "$header" ]; then echo "skip   $name: its header is not here" && return; fi
  for file in "$@"; do
    case $file in
      -*) options+=("$file") ;;
      *)
        file=$(find_file "$file")
        if [ -z "$file" ]; then echo "skip   $name: it is not here" && return; fi
        options+=(-L "$(dirname "$file")" "-l:$(basename "$file")" \
          -Xlinker "-rpath,$(dirname "$file")")
        ;;
    esac
  done
  nvcc -O2 -arch=native "-D$define" -I "$(dirname "$header")" \
    -o "$work/$name" "$here/linked_libraries.cu" "${options[@]}" \
    2> "$results/build_$name.err" ||
    { echo "FAIL   $name: it could not be built: $(tail -n 1 "$results/build_$name.err")"
    return 1; }
}

check() { # check NAME COMMAND…
  local name=$1
  shift
  if "$@" > "$results/linked_$name.out" 2>&1; then
    echo "ok     $name: $(tail -n 1 "$results/linked_$name.out")"
  else
    echo "FAIL   $name: exit $? $(tail -n 2 "$results/linked_$name.out" | tr '\n' ' ')"
    failed=$((failed + 1))
  fi
}

held() { "$gpurota" run --gpu-ids 0 --memory 8G -- "$1" limit 8; }
in_turns() { # two programs take turns in memory that fits one of them
  local code=0
  "$gpurota" run --gpu-ids 0 --swap --memory 8G -- "$1" turns 6 > "$1.other" &
  local other=$!
  "$gpurota" run --gpu-ids 0 --swap --memory 8G -- "$1" turns 6 || code=$?
  wait "$other" || code=$?
  cat "$1.other"
  return "$code"
}

make runtime PLAIN cuda.h & make cublas WITH_CUBLAS cublas_v2.h 'libcublas.so.[0-9]*' \
  'libcublasLt.so.[0-9]*' &
make cublas_driver_first WITH_CUBLAS cublas_v2.h \
  -lcuda 'libcublas.so.[0-9]*' 'libcublasLt.so.[0-9]*' &
make cublas_driver_last WITH_CUBLAS cublas_v2.h 'libcublas.so.[0-9]*' 'libcublasLt.so.[0-9]*' \
  -lcuda &
make cublas_static WITH_CUBLAS cublas_v2.h -lcublas_static -lcublasLt_static -lculibos &
make cufft WITH_CUFFT cufft.h 'libcufft.so.[0-9]*' & make cudnn WITH_CUDNN cudnn.h \
  'libcudnn.so.[0-9]*' &
make cusolver WITH_CUSOLVER cusolverDn.h 'libcusolver.so.[0-9]*' 'libcublas.so.[0-9]*' \
  'libcublasLt.so.[0-9]*' 'libcusparse.so.[0-9]*' 'libnvJitLink.so.[0-9]*' &
make nccl WITH_NCCL nccl.h 'libnccl.so.[0-9]*' &
wait
mapfile -t built < <(find "$work" -maxdepth 1 -type f -executable -printf '%f\n' | sort)
[ "${#built[@]}" -gt 3 ] || { echo "FAIL   hardly any library was found" && exit 99; }
for name in "${built[@]}"; do check "${name}_limit" held "$work/$name"; done
"$gpurota" set --gpu-ids 0 --capacity 9G --quantum 200ms > /dev/null
for name in "${built[@]}"; do check "${name}_turns" in_turns "$work/$name"; done
"$gpurota" turns
"$gpurota" set --gpu-ids 0 --reset > /dev/null
exit "$failed"
