#include "keeper/leftovers.h"

#include "base/log.h"

#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <dirent.h>

namespace gpurota::keeper {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { (void)::closedir(directory); }
};

std::optional<std::uint64_t> parse_number(std::string_view name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

void remove_leftovers(const std::string& directory, Launcher& launcher,
                      const std::function<bool(std::uint64_t)>& known) {
  const std::unique_ptr<DIR, CloseDirectory> open(::opendir(directory.c_str()));
  if (!open) return;
  std::vector<std::uint64_t> numbers;
  while (const dirent* entry = ::readdir(open.get())) {
    const auto number = parse_number(entry->d_name);
    if (!number || known(*number)) continue;
    const auto holder = launcher.find_holder(*number);
    if (holder && !*holder) numbers.push_back(*number);
  }
  for (const std::uint64_t number : numbers) {
    if (const auto gone = launcher.forget(number); !gone) {
      log::warn("cannot remove what a job left", {{"error", gone.error().message}});
    }
  }
}

}  // namespace gpurota::keeper
