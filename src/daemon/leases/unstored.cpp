#include "daemon/leases/unstored.h"

#include "base/log.h"

#include <fmt/format.h>

#include <vector>

namespace gpurota::daemon {

Result<void> Unstored::note(std::uint64_t id, Result<void> written) {
  if (written) {
    errors_.erase(id);
  } else {
    errors_.insert_or_assign(id, written.error());
  }
  return written;
}

void Unstored::note_or_say(std::uint64_t id, const std::string& name, Result<void> written) {
  if (const auto noted = note(id, std::move(written)); !noted) {
    log::error("cannot store a change, continuing",
               {{"of", what_}, {"name", name}, {"error", noted.error().message}});
  }
}

Result<void> Unstored::heard_of(std::uint64_t id, const std::string& name) const {
  const auto it = errors_.find(id);
  if (it == errors_.end()) return {};
  return tl::unexpected(
      Error(it->second).context(fmt::format("{}: the change is in effect, but not stored", name)));
}

void Unstored::write_again(const std::function<Result<void>(std::uint64_t id)>& write) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, error] : errors_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    if (!write(id)) return;
  }
}

}  // namespace gpurota::daemon
