// Sizes as an option takes them.
#pragma once

#include "base/bytes.h"

#include <string>

namespace gpurota {

// "8G", "1536M", "1000": exact, in the largest of these units that is.
std::string size_word(Bytes size);

}  // namespace gpurota
