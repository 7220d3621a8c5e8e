#include "interposer/os/elf_symbols.h"

#include <cstddef>
#include <cstdint>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>

namespace gpurota::interposer {
namespace {

using Sym = ElfW(Sym);

// The parts of an object's dynamic section that a symbol search reads.
struct Object {
  const char* strings = nullptr;
  const Sym* symbols = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* sysv_hash = nullptr;
  const uint16_t* versions = nullptr;
  ElfW(Addr) base = 0;
  const char* soname = "";
  const char* path = "";
};

// glibc relocates the addresses in most objects' dynamic sections, but not in all (the vDSO's).
template <typename T>
const T* address(ElfW(Addr) base, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < base ? value + base : value);
}

// Reads the dynamic section of the object that is loaded at `base`.
Object read_object(ElfW(Addr) base, const ElfW(Dyn) * dynamic) {
  Object o;
  o.base = base;
  if (dynamic == nullptr) return o;
  ElfW(Xword) soname = 0;
  bool named = false;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_STRTAB:
        o.strings = address<char>(o.base, value);
        break;
      case DT_SYMTAB:
        o.symbols = address<Sym>(o.base, value);
        break;
      case DT_GNU_HASH:
        o.gnu_hash = address<uint32_t>(o.base, value);
        break;
      case DT_HASH:
        o.sysv_hash = address<uint32_t>(o.base, value);
        break;
      case DT_VERSYM:
        o.versions = address<uint16_t>(o.base, value);
        break;
      case DT_SONAME:
        soname = dynamic->d_un.d_val;
        named = true;
        break;
      default:
        break;
    }
  }
  if (named && o.strings != nullptr) o.soname = o.strings + soname;
  return o;
}

bool same_name(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a) ++b;
  return *a == *b;
}

constexpr uint16_t kHiddenVersion = 0x8000;

// Keeps the best match so far: a default version beats a compatibility one.
struct Match {
  void* found = nullptr;
  bool is_default = false;

  void offer(const Object& o, uint32_t index, const char* name) {
    const Sym& s = o.symbols[index];
    if (s.st_shndx == SHN_UNDEF || s.st_value == 0) return;
    if ((s.st_info & 0xf) != STT_FUNC) return;
    if (!same_name(o.strings + s.st_name, name)) return;
    const bool is_new = o.versions == nullptr || (o.versions[index] & kHiddenVersion) == 0;
    if (found != nullptr && (is_default || !is_new)) return;
    found = reinterpret_cast<void*>(o.base + s.st_value);
    is_default = is_new;
  }
};

uint32_t gnu_hash_of(const char* name) {
  uint32_t h = 5381;
  for (; *name != '\0'; ++name) h = h * 33 + static_cast<unsigned char>(*name);
  return h;
}

uint32_t sysv_hash_of(const char* name) {
  uint32_t h = 0;
  for (; *name != '\0'; ++name) {
    h = (h << 4) + static_cast<unsigned char>(*name);
    const uint32_t high = h & 0xf0000000u;
    h = (h ^ (high >> 24)) & ~high;
  }
  return h;
}

void search_gnu(const Object& o, const char* name, Match* match) {
  const uint32_t bucket_count = o.gnu_hash[0];
  const uint32_t first = o.gnu_hash[1];
  const uint32_t bloom_words = o.gnu_hash[2];
  const uint32_t* buckets = o.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chains = buckets + bucket_count;
  if (bucket_count == 0) return;
  const uint32_t hash = gnu_hash_of(name);
  uint32_t i = buckets[hash % bucket_count];
  if (i < first) return;
  for (;; ++i) {
    const uint32_t chain = chains[i - first];
    if ((chain | 1) == (hash | 1)) match->offer(o, i, name);
    if ((chain & 1) != 0) return;
  }
}

void search_sysv(const Object& o, const char* name, Match* match) {
  const uint32_t bucket_count = o.sysv_hash[0];
  const uint32_t* buckets = o.sysv_hash + 2;
  const uint32_t* chains = buckets + bucket_count;
  if (bucket_count == 0) return;
  for (uint32_t i = buckets[sysv_hash_of(name) % bucket_count]; i != STN_UNDEF; i = chains[i]) {
    match->offer(o, i, name);
  }
}

void search(const Object& o, const char* name, Match* match) {
  if (o.strings == nullptr || o.symbols == nullptr) return;
  if (o.gnu_hash != nullptr) {
    search_gnu(o, name, match);
  } else if (o.sysv_hash != nullptr) {
    search_sysv(o, name, match);
  }
}

constexpr int kLibraries = 3;

// musl's C library is its dynamic linker, which has a file name but no soname.
bool is_musl(const char* path) {
  const char* name = path;
  for (const char* at = path; *at != '\0'; ++at) {
    if (*at == '/') name = at + 1;
  }
  const char* prefix = "ld-musl-";
  while (*prefix != '\0' && *prefix == *name) ++prefix, ++name;
  return *prefix == '\0';
}

// The rank of a library in the order of preference; kLibraries: none of these. There is no table of
// names, because its pointers would have to be relocated.
int rank_of(const Object& o) {
  if (*o.soname == '\0') return is_musl(o.path) ? 0 : kLibraries;
  if (same_name(o.soname, "libc.so.6")) return 0;
  if (same_name(o.soname, "libdl.so.2")) return 1;
  return same_name(o.soname, "libpthread.so.0") ? 2 : kLibraries;
}

struct Search {
  const char* name;
  Match matches[kLibraries];

  void search_in(const Object& o) {
    const int rank = rank_of(o);
    if (rank < kLibraries) search(o, name, &matches[rank]);
  }
  void* found() const {
    for (const Match& match : matches) {
      if (match.found != nullptr) return match.found;
    }
    return nullptr;
  }
};

int visit(dl_phdr_info* info, size_t, void* data) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  Object object = read_object(info->dlpi_addr, dynamic);
  if (info->dlpi_name != nullptr) object.path = info->dlpi_name;
  static_cast<Search*>(data)->search_in(object);
  return 0;
}

// gpurota_early_lookup() runs before this library is relocated: neither it nor any function that it
// calls, here or above, may call the C library.

long system_call(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#endif
}

// The dynamic linker's list of loaded objects. The kernel tells where the program's headers are;
// the program's dynamic section tells where the list is. nullptr: not found.
const link_map* loaded_objects() {
  ElfW(auxv_t) values[64];
  const long file =
      system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/auxv"), O_RDONLY, 0);
  if (file < 0) return nullptr;
  const long size = system_call(SYS_read, file, reinterpret_cast<long>(values), sizeof(values), 0);
  system_call(SYS_close, file, 0, 0, 0);
  const ElfW(Phdr)* headers = nullptr;
  uint64_t count = 0;
  for (long i = 0; i < size / static_cast<long>(sizeof(values[0])); ++i) {
    if (values[i].a_type == AT_PHDR)
      headers = reinterpret_cast<const ElfW(Phdr)*>(values[i].a_un.a_val);
    if (values[i].a_type == AT_PHNUM) count = values[i].a_un.a_val;
  }
  ElfW(Addr) base = 0;
  for (uint64_t i = 0; headers != nullptr && i < count; ++i) {
    if (headers[i].p_type == PT_PHDR)
      base = reinterpret_cast<ElfW(Addr)>(headers) - headers[i].p_vaddr;
  }
  for (uint64_t i = 0; headers != nullptr && i < count; ++i) {
    if (headers[i].p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(base + headers[i].p_vaddr);
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
      if (dynamic->d_tag != DT_DEBUG || dynamic->d_un.d_ptr == 0) continue;
      return reinterpret_cast<const r_debug*>(dynamic->d_un.d_ptr)->r_map;
    }
  }
  return nullptr;
}

}  // namespace

extern "C" {
extern const ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
}

EarlyFound gpurota_early_lookup(const char* name, const char* function) {
  EarlyFound found{nullptr, nullptr};
  if (name != nullptr) {
    Match own;
    search(read_object(reinterpret_cast<ElfW(Addr)>(&__ehdr_start), _DYNAMIC), name, &own);
    found.ours = own.found;
    if (found.ours != nullptr) return found;
  }
  Search libc{function, {}};
  for (const link_map* object = loaded_objects(); object != nullptr; object = object->l_next) {
    libc.search_in(read_object(object->l_addr, object->l_ld));
  }
  found.real = libc.found();
  return found;
}

void* find_libc_symbol(const char* name) {
  Search search{name, {}};
  dl_iterate_phdr(visit, &search);
  return search.found();
}

}  // namespace gpurota::interposer
