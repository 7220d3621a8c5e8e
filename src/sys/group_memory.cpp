#include "sys/group_memory.h"

#include "sys/proc_files.h"

#include <algorithm>
#include <charconv>

namespace gpurota::sys {
namespace {

std::optional<Bytes> read_bytes(const std::string& file) {
  const auto text = read_whole(file.c_str());
  if (!text) return std::nullopt;
  std::uint64_t bytes = 0;  // "max" is not a number
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), bytes);
  return error == std::errc() ? std::optional(Bytes(bytes)) : std::nullopt;
}

}  // namespace

std::optional<Bytes> read_group_room(const std::string& directory) {
  std::optional<Bytes> least;
  for (std::string group = directory; group.size() > 1; group.resize(group.rfind('/'))) {
    const auto limit = read_bytes(group + "/memory.max");
    const auto used = limit ? read_bytes(group + "/memory.current") : std::nullopt;
    if (used) least = std::min(least.value_or(*limit - *used), *limit - *used);
    if (group.rfind('/') == std::string::npos) break;
  }
  return least;
}

}  // namespace gpurota::sys
