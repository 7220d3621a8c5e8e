#include "daemon/supervised/keeper_cgroups.h"

#include "base/log.h"

#include <fmt/format.h>

#include <chrono>

namespace gpurota::daemon {
namespace {

constexpr const char* kKeeperPrefix = "keeper-";
constexpr Duration kPace = std::chrono::seconds(1);
// Longer than the end of a lease may take: its group is below this one.
constexpr int kMostTries = 120;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

void KeeperCgroups::make(pid_t keeper, const std::string& name) {
  // With the pid, since another daemon may have a job of this number.
  const std::string own =
      fmt::format("{}{}{}-{}", ports::kCgroupPrefix, kKeeperPrefix, name, keeper);
  auto cgroup = processes_.cgroups().make_below(keeper, own);
  if (cgroup) {
    std::erase_if(left_, [&](const Left& left) { return left.cgroup == *cgroup; });
    of_[keeper] = std::move(*cgroup);
  } else {
    log::debug("no cgroup for a keeper", {{"name", name}, {"error", cgroup.error().message}});
  }
}

void KeeperCgroups::take_up(pid_t keeper) {
  std::string cgroup = processes_.cgroups().of(keeper);
  const std::string prefix = std::string(ports::kCgroupPrefix) + kKeeperPrefix;
  if (last_part(cgroup).starts_with(prefix)) of_[keeper] = std::move(cgroup);
}

void KeeperCgroups::on_end(pid_t keeper) {
  const auto it = of_.find(keeper);
  if (it == of_.end()) return;
  left_.push_back({std::move(it->second)});
  of_.erase(it);
  tidy();
}

// Only what is empty can be removed.
void KeeperCgroups::tidy() {
  timer_.reset();
  std::erase_if(left_, [this](Left& left) {
    const auto members = processes_.cgroups().members(left.cgroup);
    if ((!members || !members->empty()) && ++left.tries < kMostTries) return false;
    const auto removed = processes_.cgroups().remove(left.cgroup);
    if (!removed && ++left.tries < kMostTries) return false;
    if (!removed) {
      log::warn("cannot remove the cgroup of a keeper, leaving it",
                {{"error", removed.error().message}});
    }
    return true;
  });
  if (left_.empty()) return;
  timer_ = loop_.add_timer(loop_.now() + kPace, ports::Urgency::kHousekeeping, [this] { tidy(); });
}

}  // namespace gpurota::daemon
