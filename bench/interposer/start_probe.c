/* Measures how long a program takes from its start until its work is done, and how much private
 * memory it has then.
 *
 *   start_probe         a program that never uses CUDA: nothing at all
 *   start_probe cuda    finds the driver, makes a context, allocates 1 MiB
 *
 * Prints the KiB of private memory at the end, and the microseconds since the start of main().
 * startup.py compares these with and without libgpurota.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int use_cuda(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return 1;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
  int (*set)(void*) = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent");
  int (*alloc)(uint64_t*, size_t) = (int (*)(uint64_t*, size_t))dlsym(driver, "cuMemAlloc_v2");
  void* context = NULL;
  uint64_t address = 0;
  return init(0) || retain(&context, 0) || set(context) || alloc(&address, 1 << 20);
}

static long private_kib(void) {
  char line[256];
  long sum = 0;
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    long kib = 0;
    if (sscanf(line, "Private_Clean: %ld", &kib) == 1 ||
        sscanf(line, "Private_Dirty: %ld", &kib) == 1)
      sum += kib;
  }
  if (file != NULL) fclose(file);
  return sum;
}

int main(int argc, char** argv) {
  const double begun = now_us();
  if (argc > 1 && strcmp(argv[1], "cuda") == 0 && use_cuda() != 0) {
    fprintf(stderr, "start_probe: the driver refused\n");
    return 1;
  }
  const double us = now_us() - begun;
  printf("%ld %.0f\n", private_kib(), us);
  fflush(stdout);
  _exit(0); /* the driver's own end is not measured */
}
