/* A newer driver, with functions that gpurota does not know. Compiled with PROGRAM: a program that
 * looks up these functions and uses one. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef PROGRAM

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags) { return (int)flags; }
EXPORT int cuMemAlloc_v2(uint64_t* out, size_t size) { return *out = size, 0; }
EXPORT int cuMemAlloc_v9(uint64_t* out, size_t size) { return *out = size * 9, 0; }
EXPORT int cuMemTeleport(void) { return 42; }
EXPORT int cuDeviceTotalMem_v2(size_t* out, int device) { return *out = 1u << 30, device; }
EXPORT int cuDeviceGetUuid_v2(void* out, int device) { return memset(out, 0xee, 16), device; }
EXPORT int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags,
                               int* status) {
  (void)flags, (void)status;
  *out = NULL;
  if (strcmp(name, "cuMemAlloc") == 0)
    *out = version >= 99000 ? (void*)cuMemAlloc_v9 : (void*)cuMemAlloc_v2;
  if (strncmp(name, "cuNew", 5) == 0) *out = (void*)cuMemTeleport;
  return *out == NULL ? 500 : 0;
}

#else

#include <dlfcn.h>

#define NEED(condition)                                                                \
  do {                                                                                 \
    if (!(condition)) return fprintf(stderr, "newer_program: line %d\n", __LINE__), 1; \
  } while (0)

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  NEED(driver != NULL);
  int (*alloc)(uint64_t*, size_t) = (int (*)(uint64_t*, size_t))dlsym(driver, "cuMemAlloc_v9");
  int (*get)(const char*, void**, int, uint64_t, int*) =
      (int (*)(const char*, void**, int, uint64_t, int*))dlsym(driver, "cuGetProcAddress_v2");
  int (*total)(size_t*, int) = (int (*)(size_t*, int))dlsym(driver, "cuDeviceTotalMem_v2");
  NEED(alloc != NULL && get != NULL && total != NULL);
  uint64_t address = 0;
  NEED(alloc(&address, 100) == 0 && address == 900); /* as the driver has it */
  NEED(dlsym(driver, "cuMemTeleport") != NULL);
  NEED(dlsym(driver, "cuMemTeleport") != NULL); /* counted twice, named once */
  void* found = NULL;
  int status = 0;
  NEED(get("cuMemAlloc", &found, 99000, 0, &status) == 0 && found == (void*)alloc);
  for (int i = 0; i < 10; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "cuNew%d", i);
    NEED(get(name, &found, 99000, 0, &status) == 0);
  }
  NEED(get("cuAbsent", &found, 99000, 0, &status) == 500); /* not handed out, not counted */
  size_t bytes = 0;
  NEED(total(&bytes, 0) == 0);
  puts("ready");
  fflush(stdout);
  getchar();
  return 0;
}

#endif
