// Finds functions of the C library in the objects that are loaded, by reading their symbol tables.
//
// libgpurota exports dlsym and dlvsym itself, so it cannot ask them for the real ones; and what
// moved into libc.so.6 with glibc 2.34 (dlopen, pthread_create) it finds this way too, so that one
// build runs on every glibc from 2.17 on. Called from any thread, also before constructors have
// run. Never allocates, never calls dlsym.
#pragma once

namespace gpurota::interposer {

// The function `name` as libc.so.6, libdl.so.2 or libpthread.so.0 define it (in that order), in the
// version that new programs are linked to if there are several; or as musl's C library does.
// nullptr if no such object has it.
void* find_libc_symbol(const char* name);

// Before this library is relocated, in the resolver of another library's IFUNC: what a look-up by
// the name `name` (nullptr: of no function of the driver's) is to get. `ours`, if it is a function
// that we export; else it is for the C library's `function` ("dlsym"), which is at `real`, or
// cannot be found (nullptr). Calls nothing; reads no word that is relocated.
struct EarlyFound {
  void* ours;
  void* real;
};
extern "C" __attribute__((visibility("hidden"))) EarlyFound gpurota_early_lookup(
    const char* name, const char* function);

}  // namespace gpurota::interposer
