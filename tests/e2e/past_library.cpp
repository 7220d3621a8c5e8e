// A program that bypasses libgpurota, although libgpurota is loaded: like some libraries, the
// program looks up driver functions by reading the symbols of the driver's file itself. Stands for
// any lookup that libgpurota does not know yet.
//
//   past_library MIB         holds MIB of memory, prints "holding", and waits to be ended; prints
//                            "refused: out of memory" if the driver refuses the memory
//   past_library MIB hook    the same, but first becomes a tenant by allocating with the hooked
//                            functions
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

namespace {

class Driver {
 public:
  explicit Driver(const link_map& map) : base_(map.l_addr) {
    std::ifstream file(map.l_name, std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(file), {});
  }

  // The function's address from the .dynsym section of the file.
  void* find(const char* name) const {
    const auto header = read<Elf64_Ehdr>(0);
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      const auto section = read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type != SHT_DYNSYM) continue;
      const auto names = read<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
      for (std::uint64_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
        const auto symbol = read<Elf64_Sym>(section.sh_offset + at);
        const char* found = file_.data() + names.sh_offset + symbol.st_name;
        if (symbol.st_value != 0 && std::strcmp(found, name) == 0) {
          return reinterpret_cast<void*>(base_ + symbol.st_value);
        }
      }
    }
    std::fprintf(stderr, "past_library: the driver has no %s\n", name);
    std::exit(2);
  }

 private:
  template <class T>
  T read(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }

  std::uint64_t base_;
  std::vector<char> file_;
};

using Init = int (*)(unsigned);
using Retain = int (*)(void**, int);
using SetCurrent = int (*)(void*);
using Alloc = int (*)(std::uint64_t*, std::size_t);

// Returns CUDA's error.
template <class Find>
int hold(Find find, std::size_t bytes) {
  void* context = nullptr;
  std::uint64_t memory = 0;
  int error = reinterpret_cast<Init>(find("cuInit"))(0);
  if (error == 0) {
    error = reinterpret_cast<Retain>(find("cuDevicePrimaryCtxRetain"))(&context, 0);
  }
  if (error == 0) error = reinterpret_cast<SetCurrent>(find("cuCtxSetCurrent"))(context);
  if (error == 0) error = reinterpret_cast<Alloc>(find("cuMemAlloc_v2"))(&memory, bytes);
  return error;
}

}  // namespace

int main(int argc, char** argv) {
  void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW);
  link_map* map = nullptr;
  if (handle == nullptr || ::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return 2;
  const Driver driver(*map);
  const std::size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1) << 20;
  const auto hooked = [&](const char* name) { return ::dlsym(handle, name); };
  if (argc > 2 && hold(hooked, 1 << 20) != 0) return 3;
  if (const int error = hold([&](const char* name) { return driver.find(name); }, bytes)) {
    std::printf(error == 2 ? "refused: out of memory\n" : "error %d\n", error);
    return 4;
  }
  std::puts("holding");
  std::fflush(stdout);
  for (;;) ::pause();
}
