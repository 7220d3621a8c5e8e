// Whether the dynamic linker will load a library named in LD_PRELOAD: if it cannot, it only prints
// a message and continues. Called before programs are started with LD_PRELOAD, and by `gpurota
// doctor`. Touches the file system.
#pragma once

#include <string>

namespace gpurota {

// Why LD_PRELOAD cannot load `library` into programs of the calling user, as the end of a sentence;
// empty if it can.
std::string preload_problem(const std::string& library);

}  // namespace gpurota
