// Sizes in the form that options take.
#pragma once

#include "base/bytes.h"

#include <string>

namespace gpurota {

// "8G", "1536M", "1000": exact, in the largest unit that divides the size.
std::string size_word(Bytes size);

}  // namespace gpurota
