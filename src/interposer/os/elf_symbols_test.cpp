#include "interposer/os/elf_symbols.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

namespace gpurota::interposer {
namespace {

TEST(ElfSymbols, FindsWhatTheLoaderFinds) {
  void* libc = ::dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  ASSERT_NE(libc, nullptr);
  for (const char* name : {"dlopen", "pthread_attr_init", "pthread_create", "getenv"}) {
    EXPECT_EQ(find_libc_symbol(name), ::dlsym(libc, name)) << name;
  }
}

TEST(ElfSymbols, FindsNothingThatIsNotThere) {
  EXPECT_EQ(find_libc_symbol("no_such_function_at_all"), nullptr);
  EXPECT_EQ(find_libc_symbol(""), nullptr);
}

}  // namespace
}  // namespace gpurota::interposer
