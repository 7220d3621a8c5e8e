#include "daemon/supervised/keeper_cgroups.h"

#include "base/log.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

constexpr const char* kKeeperPrefix = "keeper-";
constexpr Duration kPace = std::chrono::seconds(1);
// A keeper's group can be removed only after the lease's group below it, so removal must be tried
// for longer than the end of a lease may take.
constexpr int kMostTries = 120;
constexpr int kAtATime = 4;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string KeeperCgroups::name(const std::string& run) {
  const std::string ours = processes_.cgroups().of(::getpid());
  // The name contains the time, since another daemon may have a job of this number.
  return ours.empty() ? ours
                      : fmt::format("{}/{}{}{}-{}", ours, ports::kCgroupPrefix, kKeeperPrefix, run,
                                    loop_.now().time_since_epoch().count());
}

void KeeperCgroups::note(pid_t keeper, std::string cgroup) {
  if (!cgroup.empty()) of_[keeper] = std::move(cgroup);
}

void KeeperCgroups::take_up(pid_t keeper) {
  std::string cgroup = processes_.cgroups().of(keeper);
  const std::string prefix = std::string(ports::kCgroupPrefix) + kKeeperPrefix;
  if (last_part(cgroup).starts_with(prefix)) of_[keeper] = std::move(cgroup);
}

void KeeperCgroups::on_end(pid_t keeper) {
  const auto it = of_.find(keeper);
  if (it == of_.end()) return;
  left_.emplace(loop_.now(), Left{std::move(it->second)});
  of_.erase(it);
  arm();
}

void KeeperCgroups::arm() {
  timer_.reset();
  if (left_.empty()) return;
  timer_ = loop_.add_timer(left_.begin()->first, ports::Urgency::kHousekeeping, [this] { tidy(); });
}

// Some groups at a time, as others wait for the loop meanwhile. Only an empty group can be removed.
void KeeperCgroups::tidy() {
  const TimePoint now = loop_.now();
  for (int i = 0; i < kAtATime && !left_.empty() && left_.begin()->first <= now; ++i) {
    Left left = std::move(left_.begin()->second);
    left_.erase(left_.begin());
    ++left.tries;
    const auto members = processes_.cgroups().members(left.cgroup);
    if ((!members || !members->empty()) && left.tries < kMostTries) {
      left_.emplace(now + kPace, std::move(left));
    } else {
      remove(left);
    }
  }
  arm();
}

void KeeperCgroups::remove(const Left& left) {
  const auto done = [this, left, alive = std::weak_ptr<int>(alive_)](const Result<void>& removed) {
    if (alive.expired() || removed) return;
    if (left.tries < kMostTries) {
      left_.emplace(loop_.now() + kPace, left);
      return arm();
    }
    log::warn("cannot remove the cgroup of a keeper, leaving it",
              {{"error", removed.error().message}});
  };
  processes_.cgroups().remove(left.cgroup, done);
}

}  // namespace gpurota::daemon
