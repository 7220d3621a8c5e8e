#include "interposer/elf_symbols.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <elf.h>
#include <link.h>

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
};

// glibc relocates the addresses in most objects' dynamic sections, but not in all (the vDSO's).
template <typename T>
const T* address(ElfW(Addr) base, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < base ? value + base : value);
}

Object read_object(const dl_phdr_info& info) {
  Object o;
  o.base = info.dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
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

constexpr uint16_t kHiddenVersion = 0x8000;

// Remembers the best match so far: a default version beats a compatibility one.
struct Match {
  void* found = nullptr;
  bool is_default = false;

  void offer(const Object& o, uint32_t index, const char* name) {
    const Sym& s = o.symbols[index];
    if (s.st_shndx == SHN_UNDEF || s.st_value == 0) return;
    if ((s.st_info & 0xf) != STT_FUNC) return;
    if (strcmp(o.strings + s.st_name, name) != 0) return;
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

constexpr const char* kLibraries[] = {"libc.so.6", "libdl.so.2", "libpthread.so.0"};
constexpr size_t kLibraryCount = sizeof(kLibraries) / sizeof(kLibraries[0]);

struct Search {
  const char* name;
  Match matches[kLibraryCount];
};

int visit(dl_phdr_info* info, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const Object o = read_object(*info);
  if (o.strings == nullptr || o.symbols == nullptr) return 0;
  for (size_t i = 0; i < kLibraryCount; ++i) {
    if (strcmp(o.soname, kLibraries[i]) != 0) continue;
    if (o.gnu_hash != nullptr) {
      search_gnu(o, search.name, &search.matches[i]);
    } else if (o.sysv_hash != nullptr) {
      search_sysv(o, search.name, &search.matches[i]);
    }
  }
  return 0;
}

}  // namespace

void* find_libc_symbol(const char* name) {
  Search search{name, {}};
  dl_iterate_phdr(visit, &search);
  for (const Match& match : search.matches) {
    if (match.found != nullptr) return match.found;
  }
  return nullptr;
}

}  // namespace gpurota::interposer
