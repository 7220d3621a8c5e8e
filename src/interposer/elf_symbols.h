// Finds functions of the C library in the objects that are loaded, by reading their symbol tables.
//
// libgpurota exports dlsym and dlvsym itself, so it cannot ask them for the real ones; and what moved
// into libc.so.6 with glibc 2.34 (dlopen, pthread_create) it finds this way too, so that one build
// runs on every glibc from 2.17 on. Called from any thread, also before constructors have run.
// Never allocates, never calls dlsym.
#pragma once

namespace gpurota::interposer {

// The function `name` as libc.so.6, libdl.so.2 or libpthread.so.0 define it (in that order), in the
// version that new programs are linked to if there are several. nullptr if no such object has it.
void* find_libc_symbol(const char* name);

}  // namespace gpurota::interposer
