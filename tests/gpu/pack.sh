#!/bin/bash
# pack.sh BUILD_DIR OUT_DIR: packs the files that a build needs on another machine, with their
# libraries, for a GPU machine that has no Debian packages.
set -euo pipefail
build=${1:?usage: pack.sh BUILD_DIR OUT_DIR} out=${2:?usage: pack.sh BUILD_DIR OUT_DIR}
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib/bundled"
for program in gpurotad gpurota gpurota-keeper; do
  [ -x "$build/bin/$program" ] || continue
  strip -o "$out/bin/$program.real" "$build/bin/$program"
  ldd "$build/bin/$program" | awk '/=>/ {print $3}' |
    grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
    while read -r library; do cp -n "$library" "$out/lib/bundled/"; done
done
# gpurota-burn needs only libc. `gpurota` finds it on PATH, because `gpurota` does not know its own
# folder (see below).
if [ -x "$build/bin/gpurota-burn" ]; then
  strip -o "$out/bin/gpurota-burn" "$build/bin/gpurota-burn"
fi
# gpurota-park, too, and gpurotad starts it from its own folder.
if [ -x "$build/bin/gpurota-park" ]; then
  strip -o "$out/bin/gpurota-park" "$build/bin/gpurota-park"
fi
# gpurotad starts only our programs, so its environment may say where their libraries are. gpurotad
# finds libgpurota.so, gpurota-keeper and gpurota from its own path. Programs that gpurota runs must
# find their own libraries.
cat > "$out/bin/gpurotad" << 'EOF_WRAPPER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/../lib/bundled${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/gpurotad.real" "$@"
EOF_WRAPPER
cat > "$out/bin/gpurota" << 'EOF_WRAPPER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
PATH=$PATH:$here exec /lib64/ld-linux-x86-64.so.2 --library-path "$here/../lib/bundled" "$here/gpurota.real" "$@"
EOF_WRAPPER
sed s/gpurota.real/gpurota-keeper.real/ "$out/bin/gpurota" > "$out/bin/gpurota-keeper"
chmod +x "$out/bin/gpurota" "$out/bin/gpurotad" "$out/bin/gpurota-keeper"
mkdir -p "$out/tests/driver"
for program in hammer families; do
  [ -x "$build/tests/bin/$program" ] && strip -o "$out/tests/$program" "$build/tests/bin/$program"
done
if [ -x "$build/tests/interposer/swap_probe" ]; then
  strip -o "$out/tests/swap_probe" "$build/tests/interposer/swap_probe"
fi
if [ -x "$build/tests/e2e/park_program" ]; then
  strip -o "$out/tests/park_program" "$build/tests/e2e/park_program"
fi
if [ -x "$build/tests/interposer/usable" ]; then
  strip -o "$out/tests/usable" "$build/tests/interposer/usable"
fi
if [ -x "$build/tests/turns/turns_machine" ]; then
  strip -o "$out/tests/turns_machine" "$build/tests/turns/turns_machine"
fi
source=$(dirname "$(readlink -f "$0")")/../..
mkdir -p "$out/python"
cp -r "$source/python/gpurota" "$out/python/"
c++ -std=c++20 -O2 -I "$source/src" -o "$out/tests/overhead" "$source/bench/gpu/overhead.cpp" \
  -ldl -lpthread
cc -O2 -o "$out/tests/start_probe" "$source/bench/interposer/start_probe.c" -ldl
cp "$source/src/abi/captures.tsv" "$out/tests/driver/"
for program in "$build"/tests/driver/driver_*; do
  [ -f "$program" ] && [ -x "$program" ] &&
    strip -o "$out/tests/driver/$(basename "$program")" "$program"
done
strip -o "$out/lib/libgpurota.so" "$build/lib/libgpurota.so"
programs=$(mktemp -d)
for program in bin/gpurotad bin/gpurota lib/libgpurota.so; do
  strip -o "$programs/${program##*/}" "$build/$program"
done
python3 -B "$source/packaging/kubernetes/make_image.py" "$out/image.tar" \
  localhost/gpurota-kubernetes:0.0.0 "$programs"/* >/dev/null
rm -r "$programs"
