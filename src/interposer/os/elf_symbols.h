// Finds functions of the C library in the objects that are loaded, by reading their symbol tables.
//
// libgpurota exports dlsym and dlvsym itself, so it cannot use them to find the real ones.
// Functions that moved into libc.so.6 with glibc 2.34 (dlopen, pthread_create) are found this way
// too, so that one build runs on every glibc since 2.17. Called from any thread, even before
// constructors have run. Never allocates, never calls dlsym.
#pragma once

namespace gpurota::interposer {

// The function `name` of libc.so.6, libdl.so.2 or libpthread.so.0 (in that order), or of musl's C
// library. If it has several versions, the one that new programs are linked to. nullptr if no such
// object has it.
void* find_libc_symbol(const char* name);

// Answers a lookup of `name` that another library's IFUNC resolver makes before this library is
// relocated. `function`: the name of the C library's lookup function, such as "dlsym". `ours`: our
// exported function of that name; nullptr if there is none, or if `name` is nullptr. If `ours` is
// nullptr, the lookup must go to `function`, which is at `real` (nullptr: not found). Calls no
// other library, and reads no word that is relocated.
struct EarlyFound {
  void* ours;
  void* real;
};
extern "C" __attribute__((visibility("hidden"))) EarlyFound gpurota_early_lookup(
    const char* name, const char* function);

}  // namespace gpurota::interposer
