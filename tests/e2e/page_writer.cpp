// A tenant that writes garbage into the page that it shares with the daemon (src/abi/page.h).
//
//   page_writer BYTE     allocates 64 MiB, fills its part of the page with BYTE (0 to 255, or any
//                        bytes for "random"), prints "written", and writes again until it is ended
#include "abi/page.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace {

template <class Function>
Function find(void* driver, const char* name) {
  void* found = ::dlsym(driver, name);
  if (found == nullptr) {
    std::fprintf(stderr, "page_writer: the driver has no %s\n", name);
    std::exit(2);
  }
  return reinterpret_cast<Function>(found);
}

bool allocate() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  void* context = nullptr;
  std::uint64_t address = 0;
  return find<int (*)(unsigned)>(driver, "cuInit")(0) == 0 &&
         find<int (*)(void**, int)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0) == 0 &&
         find<int (*)(void*)>(driver, "cuCtxSetCurrent")(context) == 0 &&
         find<int (*)(std::uint64_t*, std::size_t)>(driver, "cuMemAlloc_v2")(&address, 64 << 20) ==
             0;
}

gpurota_page* find_page() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(GPUROTA_PAGE_MEMFD) == std::string::npos) continue;
    return reinterpret_cast<gpurota_page*>(std::strtoull(line.c_str(), nullptr, 16));
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  gpurota_page* const page = argc == 2 && allocate() ? find_page() : nullptr;
  if (page == nullptr) {
    std::fprintf(stderr, "page_writer: no page\n");
    return 1;
  }
  const bool anything = std::strcmp(argv[1], "random") == 0;
  std::mt19937 random(1);
  auto* const bytes = reinterpret_cast<volatile unsigned char*>(page->use);
  const std::size_t size = GPUROTA_PAGE_BYTES - offsetof(gpurota_page, use);
  for (bool first = true;; first = false) {
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] =
          static_cast<unsigned char>(anything ? random() : std::strtoul(argv[1], nullptr, 10));
    }
    if (first) std::puts("written"), std::fflush(stdout);
    ::usleep(5000);
  }
}
