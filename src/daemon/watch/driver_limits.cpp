#include "daemon/watch/driver_limits.h"

#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

// How long start() waits for the driver. A later answer takes effect when it comes.
constexpr std::chrono::milliseconds kDriverPatience{2000};
// How long a lease whose command starts waits for its limit, so that the command executes nothing
// before the limit is set. If the driver takes longer, the limit is set after the start.
constexpr std::chrono::milliseconds kLeasePatience{100};

bool is_slice(const Lease& lease) { return !lease.exclusive() && !lease.swap(); }

}  // namespace

void DriverLimits::start() {
  started_ = true;
  const bool left_behind = !parts_.file.empty() && ::access(parts_.file.c_str(), F_OK) == 0;
  if (is_on() || left_behind) run(true);
}

void DriverLimits::refresh() {
  if (started_ && (is_on() || worker_)) run(false);
}

void DriverLimits::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (gone) required_.erase(entry.lease.id);
  if (!started_ || !is_on()) return refresh();
  const auto group = entry.members.own_cgroup();
  run(!gone && group && is_slice(entry.lease) && !find(entry, entry.lease.gpus.front().uuid));
}

Result<void> DriverLimits::check_new(const Lease& lease) {
  if (parts_.config.enforcement != config::Enforcement::kDriver || !is_slice(lease)) return {};
  std::string why;
  for (const LeaseGpu& share : lease.gpus) {
    if (why.empty()) why = why_no_gpu(share);
  }
  if (why.empty() && stands_alone(lease.kind)) {
    why = fmt::format("a {} has no control group of its own", to_string(lease.kind));
  }
  if (why.empty() && parts_.processes.cgroups().of(::getpid()).empty()) {
    why = "there is no cgroup v2";
  }
  if (why.empty() && !asked_) why = "the driver has not answered yet";
  if (!why.empty()) {
    return fail(Code::kUnavailable,
                fmt::format("the driver cannot limit this lease, which the site requires "
                            "(enforcement in gpurota.toml): {}",
                            why));
  }
  required_.insert(lease.id);
  return {};
}

std::string DriverLimits::why_no_gpu(const LeaseGpu& share) const {
  const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
  if (!gpu) return "its GPU is lost";
  if (!gpu->info.parent.value.empty()) return "the driver has no memory limits for MIG instances";
  if (gpu->info.unified) return "the driver has no memory limits for unified memory";
  const auto unsupported = last_.unsupported.find(share.uuid);
  return unsupported == last_.unsupported.end() ? std::string() : unsupported->second;
}

const LimitFound* DriverLimits::find(const LeaseEntry& entry, const GpuUuid& gpu) const {
  const auto group = entry.members.own_cgroup();
  if (!is_on() || !group || !is_slice(entry.lease)) return nullptr;
  const auto found = last_.found.find({*group, gpu});
  return found == last_.found.end() ? nullptr : &found->second;
}

std::optional<Bytes> DriverLimits::limit_of(const LeaseEntry& entry, const GpuUuid& gpu) const {
  const LimitFound* const found = find(entry, gpu);
  return found ? found->hard : std::nullopt;
}

bool DriverLimits::limits(const LeaseEntry& entry) const {
  return is_on() && is_slice(entry.lease) && why_not(entry).empty() &&
         std::all_of(entry.lease.gpus.begin(), entry.lease.gpus.end(), [&](const LeaseGpu& share) {
           return limit_of(entry, share.uuid).has_value();
         });
}

std::string DriverLimits::why_not(const LeaseEntry& entry) const {
  if (!is_on() || entry.lease.exclusive()) return "";
  if (entry.lease.swap()) return "a lease that takes turns gets no limit of the driver";
  for (const LeaseGpu& share : entry.lease.gpus) {
    if (std::string why = why_no_gpu(share); !why.empty()) return why;
  }
  if (!entry.members.own_cgroup()) {
    if (stands_alone(entry.lease.kind)) {
      return fmt::format("a {} has no control group of its own", to_string(entry.lease.kind));
    }
    return entry.main ? "it has no control group of its own" : "its command has not started";
  }
  if (!entry.containers.empty()) {
    return "it has a container, whose control group gets no limit";
  }
  for (const LeaseGpu& share : entry.lease.gpus) {
    const LimitFound* const found = find(entry, share.uuid);
    if (!found) return "the driver has not answered yet";
    if (found->error) return found->error->message;
  }
  return "";
}

std::string DriverLimits::others_group(const LeaseEntry& entry) const {
  for (const LeaseGpu& share : entry.lease.gpus) {
    const LimitFound* const found = find(entry, share.uuid);
    if (found && !found->others_group.empty()) return found->others_group;
  }
  return "";
}

std::vector<GpuInfo> DriverLimits::limited_gpus() const {
  std::vector<GpuInfo> gpus = parts_.gpus.infos();
  std::erase_if(gpus, [](const GpuInfo& gpu) {
    return !gpu.parent.value.empty() || gpu.mig_enabled || gpu.unified;
  });
  return gpus;
}

LimitSetter::Wanted DriverLimits::wanted() const {
  LimitSetter::Wanted wanted;
  if (!is_on()) return wanted;
  for (const auto& [id, entry] : parts_.tables.leases) {
    const auto group = entry.members.own_cgroup();
    if (!group || !is_slice(entry.lease)) continue;
    for (const LeaseGpu& share : entry.lease.gpus) {
      const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
      if (!gpu || !share.limit) continue;
      wanted[{*group, share.uuid}] = driver_limit(*share.limit, gpu->info.memory);
    }
  }
  return wanted;
}

void DriverLimits::run(bool wait) {
  if (under_way_ > 0 && !wait) {
    again_ = true;
    return;
  }
  if (!worker_) {
    worker_ = std::make_unique<sys::Worker>(parts_.loop, "driver limits");
    setter_ = std::make_shared<LimitSetter>(parts_.make_probe(), parts_.file);
  }
  again_ = false;
  ++under_way_;
  const auto job = [setter = setter_, wanted = wanted(), gpus = limited_gpus(),
                    own = parts_.processes.cgroups().of(::getpid())] {
    return setter->carry_out(wanted, gpus, own);
  };
  const auto done = [this, number = ++rounds_](LimitRound round) {
    on_round(number, std::move(round));
  };
  if (!wait) {
    worker_->run(job, done);
  } else if (!worker_->run_and_wait(asked_ ? kLeasePatience : kDriverPatience, job, done)) {
    log::warn("the driver does not answer about its memory limits yet, continuing");
  }
}

// The worker carries out rounds in their order, but answers may arrive in another order: if the
// loop waits for a round, the loop gets the answer of this round before the answers of earlier
// rounds that are done. An answer that arrives after the answer of a later round is ignored.
void DriverLimits::on_round(std::uint64_t number, LimitRound round) {
  --under_way_;
  asked_ = true;
  if (number > last_number_) {
    last_number_ = number;
    last_ = std::move(round);
    warn_once();
    schedule();
    parts_.on_change();
    // End leases from a timer, as this function may run within a change of a lease.
    end_timer_ = parts_.loop.add_timer(parts_.loop.now(), ports::Urgency::kHousekeeping,
                                       [this] { end_unlimited(); });
  }
  if (again_ && under_way_ == 0) run(false);
}

void DriverLimits::schedule() {
  if (!is_on()) return timer_.reset();
  timer_ = parts_.loop.add_timer(parts_.loop.now() + kPeriod, ports::Urgency::kHousekeeping,
                                 [this] { refresh(); });
}

// Ignores errors about a lease that ends: its group may be gone before the driver is asked.
void DriverLimits::warn_once() {
  std::string trouble = last_.problems.empty() ? "" : last_.problems.front();
  for (const auto& [id, entry] : parts_.tables.leases) {
    for (const LeaseGpu& share : entry.lease.gpus) {
      const LimitFound* const found = find(entry, share.uuid);
      if (trouble.empty() && !entry.cause && found && found->error) trouble = found->error->message;
    }
  }
  if (!trouble.empty() && trouble != told_) {
    log::warn(trouble + ", libgpurota alone enforces limits there");
  }
  told_ = std::move(trouble);
}

// A lease is refused only once its command has started, because the lease has no control group
// before the command starts.
void DriverLimits::end_unlimited() {
  if (parts_.config.enforcement != config::Enforcement::kDriver) return;
  std::map<LeaseId, std::string> refused;
  for (const LeaseId id : required_) {
    const LeaseEntry* const entry = parts_.tables.find(id);
    if (!entry || entry->cause || !entry->main) continue;
    const bool is_asked =
        std::all_of(entry->lease.gpus.begin(), entry->lease.gpus.end(), [&](const LeaseGpu& share) {
          return !entry->members.own_cgroup() || find(*entry, share.uuid) != nullptr;
        });
    if (std::string why = why_not(*entry); is_asked && !why.empty()) refused[id] = std::move(why);
  }
  for (const auto& [id, why] : refused) {
    parts_.end(id, fmt::format("the driver cannot limit it, which the site requires "
                               "(enforcement in gpurota.toml): {}",
                               why));
  }
}

std::optional<DriverLimitsReport> DriverLimits::report() const {
  if (!is_on()) return std::nullopt;
  DriverLimitsReport report;
  report.required = parts_.config.enforcement == config::Enforcement::kDriver;
  std::set<std::string> problems(last_.problems.begin(), last_.problems.end()), others;
  for (const auto& [gpu, why] : last_.unsupported) {
    problems.insert(fmt::format("GPU {}: {}", parts_.gpus.name_of(gpu), why));
  }
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (entry.lease.exclusive() || entry.lease.swap()) continue;
    ++report.slices;
    if (limits(entry)) ++report.limited;
    for (const LeaseGpu& share : entry.lease.gpus) {
      const LimitFound* const found = find(entry, share.uuid);
      if (!found || entry.cause) continue;
      const std::string name = parts_.gpus.name_of(share.uuid);
      if (found->error) problems.insert(fmt::format("GPU {}: {}", name, found->error->message));
      if (found->hard && !found->others_group.empty()) {
        others.insert(
            fmt::format("{} on GPU {} for {}", to_string(*found->hard), name, found->others_group));
      }
    }
  }
  report.problems.assign(problems.begin(), problems.end());
  report.others.assign(others.begin(), others.end());
  if (last_.daemon_in) report.daemon_in = last_.daemon_in->group;
  return report;
}

}  // namespace gpurota::daemon
