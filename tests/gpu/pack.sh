#!/bin/bash
# pack.sh BUILD_DIR OUT_DIR: what is needed to run a build on another machine, with the libraries it
# needs beside it, for a GPU machine that has no Debian packages.
set -euo pipefail
build=${1:?usage: pack.sh BUILD_DIR OUT_DIR} out=${2:?usage: pack.sh BUILD_DIR OUT_DIR}
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib/bundled"
for program in gpurotad gpurota; do
  [ -x "$build/bin/$program" ] || continue
  strip -o "$out/bin/$program.real" "$build/bin/$program"
  ldd "$build/bin/$program" | awk '/=>/ {print $3}' |
    grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
    while read -r library; do cp -n "$library" "$out/lib/bundled/"; done
  # The bundled loader path is this program's alone: what it runs must find its own libraries.
  printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec /lib64/ld-linux-x86-64.so.2 --library-path "$here/../lib/bundled" --argv0 "$0" "$here/%s.real" "$@"\n' \
    "$program" > "$out/bin/$program"
  chmod +x "$out/bin/$program"
done
strip -o "$out/lib/libgpurota.so" "$build/lib/libgpurota.so"
