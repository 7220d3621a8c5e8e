#include "base/size_word.h"

#include <fmt/core.h>

#include <cstdint>

namespace gpurota {

std::string size_word(Bytes size) {
  const std::uint64_t count = size.count();
  if (count % gib(1).count() == 0) return fmt::format("{}G", count / gib(1).count());
  if (count % mib(1).count() == 0) return fmt::format("{}M", count / mib(1).count());
  return std::to_string(count);
}

}  // namespace gpurota
