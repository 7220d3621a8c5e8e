#!/bin/bash
# run_musl.sh LIBRARY: loads libgpurota.so into programs of musl (Alpine's C library), which the
# library cannot serve. The programs run but have no GPU, and a line on standard error says so.
# Exits with 77 without musl-gcc.
set -euo pipefail
library=$(realpath "$1")
command -v musl-gcc >/dev/null || { echo "musl-gcc is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAIL: $*" && exit 1; }

cat >driver.c <<'END'
int cuInit(unsigned flags) { (void)flags; return 0; }
END
cat >plugin.c <<'END'
int plugin(void) { return 42; }
END
cat >program.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void* run(void* memory) { memset(memory, 1, 100); return memory; }
int main(void) {
  pthread_t thread;
  void* memory = malloc(100);
  if (pthread_create(&thread, NULL, run, memory) != 0 || pthread_join(thread, NULL) != 0) return 1;
  int (*plugin)(void) = (int (*)(void))dlsym(dlopen("./libplugin.so", RTLD_NOW), "plugin");
  if (plugin == NULL || plugin() != 42) return puts("dlsym does not work"), 1;
  if (dlsym(RTLD_DEFAULT, "no_such_function") != NULL) return puts("there is a function that is not"), 1;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(dlopen("./libcuda.so.1", RTLD_NOW), "cuInit");
  if (init == NULL) return puts("no cuInit"), 1;
  printf("cuInit: %d\n", init(0));
  return 0;
}
END
musl-gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so.1 driver.c
musl-gcc -shared -fPIC -o libplugin.so plugin.c
musl-gcc -o program program.c

run() { # run VARIABLE=VALUE…: with the library preloaded
  env LD_PRELOAD="$library" "$@" ./program 2>said
}
without=$(./program)
[ "$without" = "cuInit: 0" ] || fail "the program by itself says: $without"
# Without a limit to enforce, the library changes nothing.
[ "$(run GPUROTA_RUNTIME_DIR="$work/none")" = "cuInit: 0" ] ||
  fail "without a lease it says: $(run GPUROTA_RUNTIME_DIR="$work/none"; cat said)"
[ ! -s said ] || fail "it has something to say: $(cat said)"
# Under a limit that the library cannot enforce, the program gets no GPU.
lease=(GPUROTA_LEASE=L1 GPUROTA_TOKEN=0123456789abcdef0123456789abcdef GPUROTA_SOCKET="$work/none")
[ "$(run "${lease[@]}")" = "cuInit: 100" ] ||
  fail "under a lease it says: $(run "${lease[@]}"; cat said)"
grep -q 'not glibc' said || fail "it does not say why: $(cat said)"
[ "$(wc -l <said)" = 1 ] || fail "it says more than a line: $(cat said)"
[ "$(run GPUROTA_CONTAINER=1)" = "cuInit: 100" ] ||
  fail "in a container with the device 'any' it says: $(cat said)"
echo "musl: ok"
