// Uses the functions that packaging/portable/libc_gaps.c replaces, on the system where it runs:
// libc_gaps_probe [LIBRARY]. Exits with 0 if all of them work. LIBRARY is this same file built as a
// library, from which exceptions pass through the program. Built and run by portable.sh.
#include <atomic>
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

extern "C" [[gnu::visibility("default")]] int throw_and_catch(int depth) {
  if (depth > 0) return throw_and_catch(depth - 1) + 1;
  try {
    throw std::runtime_error("thrown " + std::to_string(depth));
  } catch (const std::exception& error) {
    return std::string(error.what()) == "thrown 0" ? 0 : -1000;
  }
}

namespace {

// Exceptions in several threads at once, while others load libraries.
bool threads_throw() {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&right] {
      for (int round = 0; round < 2000; ++round) {
        try {
          (void)std::vector<int>{}.at(1);
        } catch (const std::out_of_range&) {
          ++right;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return right == 16000;
}

// References counted by several threads: exact only with atomics.
bool references_are_counted() {
  const auto shared = std::make_shared<int>(7);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&shared] {
      std::shared_ptr<int> mine;
      for (int round = 0; round < 100000; ++round) {
        mine = shared;
        mine.reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return shared.use_count() == 1;
}

bool numbers_differ() {
  std::random_device device;
  std::set<unsigned> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(device());
  return seen.size() > 990;
}

bool library_throws(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  auto* function = reinterpret_cast<int (*)(int)>(::dlsym(library, "throw_and_catch"));
  return function != nullptr && function != &throw_and_catch && function(20) == 20;
}

}  // namespace

int main(int argc, char** argv) {
  int wrong = 0;
  const auto check = [&wrong](bool holds, const char* what) {
    if (!holds) std::printf("wrong: %s\n", what);
    if (!holds) ++wrong;
  };
  check(throw_and_catch(20) == 20, "an exception");
  check(threads_throw(), "exceptions of threads");
  check(references_are_counted(), "references");
  check(numbers_differ(), "random numbers");
  if (argc > 1) check(library_throws(argv[1]), "an exception in a library");
  return wrong;
}
