/* A library and a program that ask dlsym for names that libgpurota does not hook. The answers must
 * be the same as without libgpurota. Built at -O0 and -O2, because an interposed dlsym that calls
 * the real one instead of jumping to it resolves RTLD_NEXT for itself, and only some tail calls
 * hide that.
 *
 * Compiled with WRAPPER: a preloaded malloc wrapper, loaded after libgpurota. Without: the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WRAPPER

static size_t calls;
static int inside;
static char early[65536];
static size_t early_used;

__attribute__((visibility("default"))) size_t wrapped_calls(void) { return calls; }

/* Asks for the next malloc inside malloc: a dlsym that allocates would call this function again,
 * without end. */
__attribute__((visibility("default"))) void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (inside) {
    void* p = early + early_used;
    early_used += (size + 15) & ~(size_t)15;
    return early_used <= sizeof(early) ? p : NULL;
  }
  if (!next) {
    inside = 1;
    next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
    inside = 0;
    if (early_used != 0) _Exit(10); /* dlsym allocated memory */
  }
  if (!next || next == malloc) _Exit(11);
  ++calls;
  return next(size);
}

__attribute__((visibility("default"))) const char* which(void) { return "wrapper"; }

#else

__attribute__((visibility("default"))) const char* which(void) { return "program"; }

static void need(int condition, int code) {
  if (!condition) {
    fprintf(stderr, "dlsym_probe: check %d failed\n", code);
    exit(code);
  }
}

int main(void) {
  size_t (*count)(void) = (size_t(*)(void))dlsym(RTLD_DEFAULT, "wrapped_calls");
  need(count != NULL, 20);
  const size_t before = count();
  free(malloc(100));
  need(count() > before, 21);
  /* From the program, the next `which` is the wrapper's, and libc's malloc is the last. */
  const char* (*next)(void) = (const char* (*)(void))dlsym(RTLD_NEXT, "which");
  need(next != NULL && strcmp(next(), "wrapper") == 0, 22);
  need(dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.99") == NULL, 23);
  need(dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.34") != NULL, 24);
  dlerror();
  need(dlsym(RTLD_DEFAULT, "no_such_function_at_all") == NULL, 25);
  need(dlerror() != NULL, 26);
  /* Names that only look like the driver's. */
  need(dlsym(RTLD_DEFAULT, "cudnnCreate") == NULL, 27);
  need(dlsym(RTLD_DEFAULT, "cu") == NULL && dlsym(RTLD_DEFAULT, "") == NULL, 28);
  /* The driver is not loaded, so its names are not found, not even by another library. */
  need(dlsym(RTLD_NEXT, "cuDriverGetVersion") == NULL, 29);
  /* dlsym itself, looked up by name, works too. */
  void* (*again)(void*, const char*) = (void* (*)(void*, const char*))dlsym(RTLD_DEFAULT, "dlsym");
  need(again != NULL && again(RTLD_DEFAULT, "main_is_not_exported") == NULL, 30);
  need(again(RTLD_DEFAULT, "malloc") != NULL, 31);
  puts("ok");
  return 0;
}

#endif
