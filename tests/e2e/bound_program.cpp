// A program whose library bypasses libgpurota, although libgpurota is loaded:
//
//   bound_program deepbind PLUGIN MIB     the library looks for symbols in its own libraries first
//   bound_program namespace PLUGIN MIB    the library has a copy of the driver of its own (dlmopen)
//
// PLUGIN is bound_plugin.cpp. Holds MIB of memory, prints "holding", and waits to be ended; prints
// CUDA's error if the driver refuses the memory.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool deep = std::strcmp(argv[1], "deepbind") == 0;
  void* const plugin = deep ? ::dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND)
                            : ::dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
  void* const hold = plugin == nullptr ? nullptr : ::dlsym(plugin, "plugin_hold");
  if (hold == nullptr) {
    std::puts(::dlerror());
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[3], nullptr, 10) << 20;
  const int error = reinterpret_cast<int (*)(std::size_t)>(hold)(bytes);
  if (error != 0) {
    std::printf(error == 2 ? "refused: out of memory\n" : "error %d\n", error);
    return 4;
  }
  std::puts("holding");
  std::fflush(stdout);
  for (;;) ::pause();
}
