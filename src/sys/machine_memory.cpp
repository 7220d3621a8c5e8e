#include "sys/machine_memory.h"

#include "sys/proc_files.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace gpurota::sys {
namespace {

// The amount in a line such as "MemTotal:       16384 kB".
std::optional<Bytes> figure(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == text.npos || (at > 0 && text[at - 1] != '\n')) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t kib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kib);
  return error == std::errc() ? std::optional(Bytes(kib << 10)) : std::nullopt;
}

}  // namespace

std::optional<MachineMemory> parse_meminfo(std::string_view text) {
  const auto total = figure(text, "MemTotal:"), available = figure(text, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return MachineMemory{*total, *available};
}

std::optional<MachineMemory> read_machine_memory() {
  const auto text = read_whole("/proc/meminfo");
  return text ? parse_meminfo(*text) : std::nullopt;
}

}  // namespace gpurota::sys
