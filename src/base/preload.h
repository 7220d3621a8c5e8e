// Whether the dynamic linker will load a library that LD_PRELOAD names: one that it cannot load it
// leaves out with no more than a message. Called by whoever starts programs with it, and by
// `gpurota doctor`. Touches the file system.
#pragma once

#include <string>

namespace gpurota {

// Why programs of the calling user cannot load `library` so, as the end of a sentence; empty: they
// can.
std::string preload_problem(const std::string& library);

}  // namespace gpurota
