/* imports.c: memory that several processes have, by hand: carries out each line of its input, and
 * answers each with one line, which begins with the driver's result unless the list says otherwise.
 *
 *   cc -O1 -o imports imports.c -ldl        (no CUDA header: its few facts are below)
 *
 *   make MIB         makes memory that can be exported (cuMemCreate)
 *   export           exports the memory: also answers with the path of a descriptor, for `hold` and
 *                    `take` of another process
 *   close            closes the descriptor of `export`
 *   map MIB          maps the memory that was made or taken, so that it can be written
 *   unmap, release   ends the mapping; releases the handle of the memory
 *   hold PATH        only duplicates another process's descriptor: also answers with the path of
 *                    the duplicate
 *   key              answers with the lock on the held descriptor ("-": none), by which libgpurota
 *                    knows the memory
 *   drop             closes the held descriptor
 *   take PATH        imports the memory of a descriptor (cuMemImportFromShareableHandle)
 *   external PATH MIB   the same by cuImportExternalMemory; `destroy` ends this import
 *   alloc MIB, free  allocates and frees linear memory
 *   handle           also answers with the handle of the linear memory, 128 hexadecimal digits
 *   open HEX, shut   opens linear memory by such a handle, and closes it (cuIpcCloseMemHandle)
 *   pool MIB         makes a pool that can be exported, and allocates a piece of MIB from it
 *   poolpath, piece  also answers with the path of the pool's descriptor; with the handle of the
 *                    piece, 128 hexadecimal digits
 *   poolin PATH      imports a pool
 *   piecein HEX, piecefree   imports a piece of the imported pool; frees the piece
 *   info             answers with the free and the total MiB, by cuMemGetInfo
 *   nvml             answers with the MiB in use on the GPU, and PID=MiB of each process that NVML
 *                    lists
 *   pid, end         answers with the process's number; ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef struct {
  int type, id;
} location;
typedef struct {
  int type, handles;
  location where;
  void* win32;
  unsigned char flags[8];
} allocation_prop;
typedef struct {
  int type, handles;
  location where;
  void* security;
  size_t most;
  unsigned char reserved[56];
} pool_props;
typedef struct {
  location where;
  int flags;
} access_desc;
typedef struct {
  char bytes[64];
} blob;
typedef struct {
  int type;
  union {
    int fd;
    void* two[2];
  } handle;
  u64 size;
  unsigned flags, reserved[16];
} external_desc;

static void *cuda, *nvml;
#define CU(name, ...) ((int (*)(__VA_ARGS__))dlsym(cuda, #name))
#define NV(name, ...) ((int (*)(__VA_ARGS__))dlsym(nvml, #name))
enum { kDescriptor = 1, kMiB = 1 << 20 };

static u64 handle, address, linear, opened, piece, size_made;
static int given = -1, held = -1;
static void *pool, *imported_pool, *external;

static int duplicate_of(const char* path) {
  int pid = 0, number = -1;
  if (sscanf(path, "/proc/%d/fd/%d", &pid, &number) != 2) return -1;
  int process = (int)syscall(434, pid, 0);        /* pidfd_open */
  int fd = (int)syscall(438, process, number, 0); /* pidfd_getfd */
  close(process);
  return fd;
}
static void hex_of(const blob* b, char* out) {
  for (int i = 0; i < 64; i++) sprintf(out + 2 * i, "%02x", (unsigned char)b->bytes[i]);
}
static void blob_of(const char* hex, blob* b) {
  for (int i = 0; i < 64; i++) {
    unsigned v = 0;
    sscanf(hex + 2 * i, "%2x", &v);
    b->bytes[i] = (char)v;
  }
}
static void say_key(void) {
  char path[64], line[256], found[256] = "-";
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", held);
  FILE* f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, "lock:", 5))
      snprintf(found, sizeof found, "%.*s", (int)strcspn(line, "\n"), line);
  if (f) fclose(f);
  printf("%s\n", found);
}
static void say_nvml(void) {
  struct {
    unsigned pid, pad;
    u64 used;
    unsigned gi, ci;
  } list[64];
  struct {
    u64 total, free, used;
  } memory = {0, 0, 0};
  unsigned count = 64;
  void* device = 0;
  if (NV(nvmlDeviceGetHandleByIndex_v2, unsigned, void**)(0, &device)) {
    printf("no NVML\n");
    return;
  }
  NV(nvmlDeviceGetMemoryInfo, void*, void*)(device, &memory);
  printf("%llu", memory.used / kMiB);
  if (!NV(nvmlDeviceGetComputeRunningProcesses_v3, void*, unsigned*, void*)(device, &count, list))
    for (unsigned i = 0; i < count; i++)
      printf(" %u=%lld", list[i].pid,
             list[i].used == ~0ull ? -1 : (long long)(list[i].used / kMiB));
  printf("\n");
}
static int map_it(u64 size) {
  access_desc both = {{1, 0}, 3};
  int r = CU(cuMemAddressReserve, u64*, size_t, size_t, u64, u64)(&address, size, 0, 0, 0);
  if (!r) r = CU(cuMemMap, u64, size_t, size_t, u64, u64)(address, size, 0, handle, 0);
  if (!r) r = CU(cuMemSetAccess, u64, size_t, void*, size_t)(address, size, &both, 1);
  if (!r) r = CU(cuMemsetD32_v2, u64, unsigned, size_t)(address, 7, kMiB / 4);
  size_made = size;
  return r;
}
static int make_pool(u64 size) {
  pool_props props;
  memset(&props, 0, sizeof props);
  props.type = 1, props.handles = kDescriptor, props.where.type = 1;
  int r = CU(cuMemPoolCreate, void**, void*)(&pool, &props);
  if (!r) r = CU(cuMemAllocFromPoolAsync, u64*, size_t, void*, void*)(&piece, size, pool, 0);
  if (!r) r = CU(cuCtxSynchronize, void)();
  return r;
}
static int take_external(const char* path, u64 size) {
  external_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.type = 1, desc.handle.fd = duplicate_of(path), desc.size = size;
  return CU(cuImportExternalMemory, void**, void*)(&external, &desc);
}

// Runs a command about pools. Returns the driver's result, or -1 if the answer has been given.
static int of_pools(const char* word, const char* argument, u64 mib) {
  int r = 1;
  blob b;
  char hex[129] = "";
  access_desc both = {{1, 0}, 3};
  if (!strcmp(word, "pool")) {
    r = make_pool(mib);
  } else if (!strcmp(word, "poolpath")) {
    r = CU(cuMemPoolExportToShareableHandle, void*, void*, int, u64)(&given, pool, kDescriptor, 0);
    if (!r) {
      printf("0 /proc/%d/fd/%d\n", getpid(), given);
      return -1;
    }
  } else if (!strcmp(word, "piece")) {
    r = CU(cuMemPoolExportPointer, void*, u64)(&b, piece);
    if (!r) {
      hex_of(&b, hex);
      printf("0 %s\n", hex);
      return -1;
    }
  } else if (!strcmp(word, "poolin")) {
    int fd = duplicate_of(argument);
    r = CU(cuMemPoolImportFromShareableHandle, void**, void*, int, u64)(
        &imported_pool, (void*)(long)fd, kDescriptor, 0);
    if (!r) r = CU(cuMemPoolSetAccess, void*, void*, size_t)(imported_pool, &both, 1);
    close(fd);
  } else if (!strcmp(word, "piecein")) {
    blob_of(argument, &b);
    r = CU(cuMemPoolImportPointer, u64*, void*, void*)(&piece, imported_pool, &b);
  } else if (!strcmp(word, "piecefree")) {
    r = CU(cuMemFreeAsync, u64, void*)(piece, 0);
    if (!r) r = CU(cuCtxSynchronize, void)();
  }
  return r;
}

static void carry_out(const char* word, const char* argument, u64 size) {
  int r = 0;
  blob b;
  char hex[129] = "";
  u64 mib = strtoull(argument, 0, 10) * kMiB;
#define IS(name) !strcmp(word, name)
  if (IS("make")) {
    allocation_prop prop;
    memset(&prop, 0, sizeof prop);
    prop.type = 1, prop.handles = kDescriptor, prop.where.type = 1;
    r = CU(cuMemCreate, u64*, size_t, void*, u64)(&handle, mib, &prop, 0);
  } else if (IS("export")) {
    r = CU(cuMemExportToShareableHandle, void*, u64, int, u64)(&given, handle, kDescriptor, 0);
    if (!r) {
      printf("0 /proc/%d/fd/%d\n", getpid(), given);
      return;
    }
  } else if (IS("close")) {
    close(given);
  } else if (IS("map")) {
    r = map_it(mib);
  } else if (IS("unmap")) {
    r = CU(cuMemUnmap, u64, size_t)(address, size_made);
    CU(cuMemAddressFree, u64, size_t)(address, size_made);
  } else if (IS("release")) {
    r = CU(cuMemRelease, u64)(handle);
  } else if (IS("hold")) {
    held = duplicate_of(argument);
    if (held >= 0) {
      printf("0 /proc/%d/fd/%d\n", getpid(), held);
      return;
    }
    r = 1;
  } else if (IS("key")) {
    say_key();
    return;
  } else if (IS("drop")) {
    close(held);
  } else if (IS("take")) {
    int fd = duplicate_of(argument);
    r = CU(cuMemImportFromShareableHandle, u64*, void*, int)(&handle, (void*)(long)fd, kDescriptor);
    close(fd);
  } else if (IS("external")) {
    r = take_external(argument, size * kMiB);
  } else if (IS("destroy")) {
    r = CU(cuDestroyExternalMemory, void*)(external);
  } else if (IS("alloc")) {
    r = CU(cuMemAlloc_v2, u64*, size_t)(&linear, mib);
  } else if (IS("free")) {
    r = CU(cuMemFree_v2, u64)(linear);
  } else if (IS("handle")) {
    r = CU(cuIpcGetMemHandle, void*, u64)(&b, linear);
    if (!r) {
      hex_of(&b, hex);
      printf("0 %s\n", hex);
      return;
    }
  } else if (IS("open")) {
    blob_of(argument, &b);
    r = CU(cuIpcOpenMemHandle_v2, u64*, blob, unsigned)(&opened, b, 1);
  } else if (IS("shut")) {
    r = CU(cuIpcCloseMemHandle, u64)(opened);
  } else if (!strncmp(word, "p", 1) && strcmp(word, "pid")) {
    r = of_pools(word, argument, mib);
    if (r < 0) return;
  } else if (IS("info")) {
    size_t free = 0, total = 0;
    CU(cuMemGetInfo_v2, size_t*, size_t*)(&free, &total);
    printf("%zu %zu\n", free / kMiB, total / kMiB);
    return;
  } else if (IS("nvml")) {
    say_nvml();
    return;
  } else if (IS("end")) {
    exit(0);
  } else if (IS("pid")) {
    printf("%d\n", getpid());
    return;
  } else {
    printf("what?\n");
    return;
  }
  printf("%d\n", r);
}

int main(void) {
  char line[512], word[32], argument[256];
  setvbuf(stdout, 0, _IOLBF, 0);
  cuda = dlopen("libcuda.so.1", RTLD_NOW);
  nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!cuda || !nvml) {
    printf("no driver: %s\n", dlerror());
    return 77;
  }
  void* context = 0;
  int r = CU(cuInit, unsigned)(0);
  if (!r) r = CU(cuDevicePrimaryCtxRetain, void**, int)(&context, 0);
  if (!r) r = CU(cuCtxSetCurrent, void*)(context);
  if (r) {
    printf("no context: %d\n", r);
    return 3;
  }
  NV(nvmlInit_v2, void)();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    u64 size = 0;
    *argument = 0;
    if (sscanf(line, "%31s %255s %llu", word, argument, &size) >= 1)
      carry_out(word, argument, size);
  }
  return 0;
}
