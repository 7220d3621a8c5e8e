// The functions of the C library that libstdc++.a and libgcc_eh.a of g++ 12 need and glibc 2.31
// does not have. packaging/portable/sysroot.sh puts them into libc_nonshared.a, so each program and
// library gets those that it needs, hidden. Any thread.
//
// The list is complete: the linker would report any other missing function, and
// packaging/portable/check_files.py refuses symbols that an older system lacks.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32: true while there is only one thread; libstdc++ then counts references without
// atomics. "No" is always right.
HIDDEN char __libc_single_threaded = 0;

// glibc 2.36: a random number, for std::random_device. The function has no way to report an error,
// so the program ends if the kernel gives no number.
HIDDEN uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
    if (errno != EINTR) abort();
  }
  return number;
}

// glibc 2.35: which object an address is in, and where its table of exceptions is. The fields are
// as <dlfcn.h> has them in that version. libgcc reads only dlfo_eh_frame and dlfo_eh_dbase; the
// latter is null on all machines but 32-bit x86.
struct found_object {
  unsigned long long dlfo_flags;
  void* dlfo_map_start;
  void* dlfo_map_end;
  struct link_map* dlfo_link_map;
  void* dlfo_eh_frame;
#ifndef __x86_64__
  void* dlfo_eh_dbase;
#endif
  unsigned long long reserved[7];
};
HIDDEN int _dl_find_object(void* address, struct found_object* found);

struct search {
  uintptr_t address;
  struct found_object* found;
};

static int find_address(struct dl_phdr_info* object, size_t size, void* context) {
  (void)size;
  const struct search* search = context;
  void* table = NULL;
  int is_inside = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) table = (void*)start;
    if (part->p_type == PT_LOAD && search->address - start < part->p_memsz) is_inside = 1;
  }
  if (!is_inside) return 0;
  if (table == NULL) return -1;  // as in glibc: there is no table to unwind by
  *search->found = (struct found_object){.dlfo_eh_frame = table};
  return 1;
}

// Searches all objects under the lock of the loader, as libgcc did before glibc had
// _dl_find_object.
HIDDEN int _dl_find_object(void* address, struct found_object* found) {
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(find_address, &search) == 1 ? 0 : -1;
}
