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
constexpr std::chrono::milliseconds kStartOfDaemon{2000};

constexpr const char* kSharesLimit =
    "the driver limits only all leases of its pod on a GPU together";

Error not_limited(const std::string& why) {
  return {Code::kUnavailable, 0,
          fmt::format("the driver cannot limit this lease, which the site requires (enforcement in "
                      "gpurota.toml): {}",
                      why)};
}

bool is_slice(const Lease& lease) { return !lease.exclusive() && !lease.swap(); }

const char* name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::kCommand:
      return "a command";
    case GroupKind::kContainer:
      return "a container";
    case GroupKind::kPod:
      break;
  }
  return "its pod";
}

bool in_one_pod(const LeaseEntry& one, const LeaseEntry& other) {
  return !one.pod_uid.empty() && one.pod_uid == other.pod_uid && one.lease.id != other.lease.id;
}

// Another lease of the same pod that has no limit on this GPU; null: none. With such a lease the
// pod gets no limit there.
const LeaseEntry* unlimited_in_pod(const LeaseTables& tables, const LeaseEntry& entry,
                                   const GpuUuid& gpu) {
  if (entry.pod_uid.empty()) return nullptr;
  for (const auto& [id, other] : tables.leases) {
    if (in_one_pod(entry, other) && !is_slice(other.lease) && other.lease.find_gpu(gpu)) {
      return &other;
    }
  }
  return nullptr;
}

// Whether the limit of the lease's pod is the sum of the limits of several leases. A program of the
// lease that evades the library can then use what the other lease leaves.
bool shares_limit_in_pod(const LeaseTables& tables, const LeaseEntry& entry) {
  return std::any_of(tables.leases.begin(), tables.leases.end(), [&entry](const auto& each) {
    const LeaseEntry& other = each.second;
    return in_one_pod(entry, other) && std::any_of(entry.lease.gpus.begin(), entry.lease.gpus.end(),
                                                   [&other](const LeaseGpu& share) {
                                                     return other.lease.find_gpu(share.uuid);
                                                   });
  });
}

// An error if this lease takes the limit from a lease of the same pod that must have it.
Result<void> check_beside(const LeaseTables& tables, const LeaseEntry& entry) {
  for (const auto& [id, other] : tables.leases) {
    if (!in_one_pod(entry, other) || !other.needs_driver_limit) continue;
    for (const LeaseGpu& share : entry.lease.gpus) {
      if (!other.lease.find_gpu(share.uuid)) continue;
      return fail(Code::kUnavailable,
                  fmt::format("its pod has {} on the same GPU, whose limit the driver must enforce "
                              "(enforcement in gpurota.toml)",
                              to_string(id)));
    }
  }
  return {};
}

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
  if (gone) {
    chosen_.erase(entry.lease.id);
    chooser_.forget(entry.lease.id);
    starts_.erase(entry.lease.id);
    failing_since_.erase(entry.lease.id);
  } else if (is_on()) {
    choose(entry);
  }
  refresh();
}

Result<void> DriverLimits::check_request(const AcquireRequest& request) const {
  const bool is_slice = request.placement.memory && !request.placement.swap;
  if (parts_.config.enforcement != config::Enforcement::kDriver || !is_slice) return {};
  if (const std::string why = why_no_kind(request.kind); !why.empty()) {
    return tl::unexpected(not_limited(why));
  }
  return {};
}

Result<void> DriverLimits::check_new(const LeaseEntry& entry) const {
  if (parts_.config.enforcement != config::Enforcement::kDriver) return {};
  GPUROTA_TRY(check_beside(parts_.tables, entry));
  if (!is_slice(entry.lease)) return {};
  std::string why;
  for (const LeaseGpu& share : entry.lease.gpus) {
    if (why.empty()) why = why_no_gpu(entry, share);
  }
  if (why.empty()) {
    why = entry.pod_uid.empty() ? why_no_kind(entry.lease.kind) : why_no_pod(entry);
  }
  if (why.empty() && shares_limit_in_pod(parts_.tables, entry)) why = kSharesLimit;
  if (why.empty() && !asked_) why = "the driver has not answered yet";
  if (!why.empty()) return tl::unexpected(not_limited(why));
  return {};
}

Result<bool> DriverLimits::check_start(const LeaseEntry& entry) {
  if (!is_on() || !started_ || !is_slice(entry.lease)) return false;
  const LeaseId id = entry.lease.id;
  const std::string last = chosen(entry).group;
  choose(entry);
  if (chosen(entry).group != last) refresh();
  const bool unanswered = is_unanswered(entry);
  if (!unanswered) {
    starts_.erase(id);
  } else {
    const TimePoint now = parts_.loop.now();
    const auto start = starts_.try_emplace(id, now + kStartPatience).first;
    if (now < start->second) {
      watch_starts();
      return true;
    }
    starts_.erase(start);
  }
  if (!is_required(entry)) {
    if (unanswered) log::warn("the driver does not answer, starting programs without its limit");
    return false;
  }
  const std::string why = unanswered ? "the driver did not answer in time" : why_not(entry);
  if (!why.empty()) return tl::unexpected(not_limited(why));
  return false;
}

bool DriverLimits::is_unanswered(const LeaseEntry& entry) const {
  if (chosen(entry).group.empty()) return false;
  return std::any_of(entry.lease.gpus.begin(), entry.lease.gpus.end(), [&](const LeaseGpu& share) {
    return why_no_gpu(entry, share).empty() && !find(entry, share.uuid);
  });
}

bool DriverLimits::is_required(const LeaseEntry& entry) const {
  return parts_.config.enforcement == config::Enforcement::kDriver && entry.needs_driver_limit;
}

bool DriverLimits::fails_for_now(const LeaseEntry& entry) const {
  return std::any_of(entry.lease.gpus.begin(), entry.lease.gpus.end(), [&](const LeaseGpu& share) {
    const LimitFound* const found = find(entry, share.uuid);
    return found && found->error && found->error->code == Code::kIo;
  });
}

// on_change() lets starts ask again whose time is over.
void DriverLimits::watch_starts() {
  if (starts_timer_) return;
  std::optional<TimePoint> first;
  for (const auto& [id, until] : starts_) {
    if (until > parts_.loop.now() && (!first || until < *first)) first = until;
  }
  if (!first) return;
  starts_timer_ = parts_.loop.add_timer(*first, ports::Urgency::kClient, [this] {
    const auto running = std::move(starts_timer_);
    parts_.on_change();
    watch_starts();
  });
}

const LimitedGroup& DriverLimits::chosen(const LeaseEntry& entry) const {
  static const LimitedGroup none;
  const auto found = chosen_.find(entry.lease.id);
  return found == chosen_.end() ? none : found->second;
}

void DriverLimits::choose(const LeaseEntry& entry) {
  if (!is_slice(entry.lease)) return;
  LimitedGroup& group = chosen_[entry.lease.id];
  group = chooser_.choose(entry, group.group);
}

std::string DriverLimits::why_no_kind(LeaseKind kind) const {
  if (kind == LeaseKind::kPod) return "it is not known which pod uses it, or several pods do";
  if (stands_alone(kind)) {
    return fmt::format("a {} has no control group of its own", to_string(kind));
  }
  return parts_.processes.cgroups().of(::getpid()).empty() ? "there is no cgroup v2" : "";
}

// Kubelet makes the pod's group before it asks gpurota-dra to prepare the pod's claims, so a group
// that is not found is not merely late.
std::string DriverLimits::why_no_pod(const LeaseEntry& entry) const {
  return chooser_.pod_group(entry).empty()
             ? "its pod has no control group of cgroup v2 where kubelet makes them"
             : "";
}

std::string DriverLimits::why_no_gpu(const LeaseEntry& entry, const LeaseGpu& share) const {
  const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
  if (!gpu) return "its GPU is lost";
  if (!gpu->info.parent.value.empty()) return "the driver has no memory limits for MIG instances";
  if (gpu->info.unified) return "the driver has no memory limits for unified memory";
  if (const LeaseEntry* const other = unlimited_in_pod(parts_.tables, entry, share.uuid)) {
    return fmt::format("another lease of its pod {} its GPU",
                       other->lease.swap() ? "takes turns on" : "has the whole of");
  }
  const auto unsupported = last_.unsupported.find(share.uuid);
  return unsupported == last_.unsupported.end() ? std::string() : unsupported->second;
}

const LimitFound* DriverLimits::find(const LeaseEntry& entry, const GpuUuid& gpu) const {
  if (!is_on() || !is_slice(entry.lease)) return nullptr;
  const auto found = last_.found.find({chosen(entry).group, gpu});
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
    if (std::string why = why_no_gpu(entry, share); !why.empty()) return why;
  }
  if (chosen(entry).group.empty()) return why_no_group(entry);
  for (const LeaseGpu& share : entry.lease.gpus) {
    const LimitFound* const found = find(entry, share.uuid);
    if (!found) return "the driver has not answered yet";
    if (found->error) return found->error->message;
  }
  return why_in_part(entry);
}

std::string DriverLimits::why_no_group(const LeaseEntry& entry) const {
  if (chosen(entry).shared) return "others have programs in its container, too";
  switch (entry.lease.kind) {
    case LeaseKind::kReservation:
      return "a reservation has no control group of its own, only its commands ('gpurota run') "
             "have";
    case LeaseKind::kPod:
      if (!entry.pod_uid.empty()) return why_no_pod(entry);
      return "none of its programs has shown yet which control group is the container's";
    default:
      break;
  }
  if (entry.automatic) return "an automatic lease has no control group of its own";
  return entry.main ? "it has no control group of its own" : "its command has not started";
}

std::string DriverLimits::why_in_part(const LeaseEntry& entry) const {
  const LimitedGroup& group = chosen(entry);
  if (group.groups > 1) {
    return fmt::format("it is in {} control groups, and the driver limits only the one of {}",
                       group.groups, name_of(group.kind));
  }
  if (group.kind == GroupKind::kPod && shares_limit_in_pod(parts_.tables, entry)) {
    return kSharesLimit;
  }
  if (entry.lease.kind == LeaseKind::kReservation) {
    return fmt::format(
        "the driver limits only its {}: a shell with the reservation's variables has no control "
        "group of its own",
        group.kind == GroupKind::kContainer ? "container" : "command");
  }
  for (const LeaseGpu& share : entry.lease.gpus) {
    const LimitFound* const found = find(entry, share.uuid);
    if (!found || !found->hard) continue;
    const auto is_larger = [found](const OthersLimit& each) { return each.hard > *found->hard; };
    if (std::any_of(found->below.begin(), found->below.end(), is_larger)) {
      return "somebody else has set a larger limit for some of its programs";
    }
  }
  return "";
}

std::string DriverLimits::others_group(const LeaseEntry& entry) const {
  for (const LeaseGpu& share : entry.lease.gpus) {
    const LimitFound* const found = find(entry, share.uuid);
    if (found && !found->others_group.empty()) return found->others_group;
    if (found && !found->below.empty()) return found->below.front().group;
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
    const std::string& group = chosen(entry).group;
    if (group.empty() || !is_slice(entry.lease)) continue;
    for (const LeaseGpu& share : entry.lease.gpus) {
      const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
      if (!gpu || !share.limit || unlimited_in_pod(parts_.tables, entry, share.uuid)) continue;
      // Only leases of one pod have the same group.
      const auto [place, is_first] = wanted.try_emplace({group, share.uuid});
      const Bytes nested = is_first ? nested_limits(group, *gpu) : Bytes();
      const Bytes hard = place->second + driver_limit(*share.limit + nested, gpu->info.memory);
      place->second = std::min(hard, gpu->info.memory);
    }
  }
  return wanted;
}

// The sum of the limits of leases whose programs run within `group`, except those that get the
// limit of `group`. Where limits nest, the memory of these leases counts there, too.
Bytes DriverLimits::nested_limits(const std::string& group, const GpuEntry& gpu) const {
  const auto is_inside = [&group](const std::string& each) {
    return ports::is_in_cgroup(each, group);
  };
  Bytes sum;
  for (const auto& [id, groups] : chooser_.groups()) {
    const LeaseEntry* const entry = parts_.tables.find(id);
    const LeaseGpu* const share = entry ? entry->lease.find_gpu(gpu.info.uuid) : nullptr;
    if (!share || chosen(*entry).group == group || !groups.has_any(is_inside)) continue;
    sum += share->limit.value_or(gpu.info.memory);
  }
  return sum;
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
  if (is_on()) {
    chooser_.read_groups();
    for (const auto& [id, entry] : parts_.tables.leases) {
      if (!is_slice(entry.lease)) continue;
      LimitedGroup& group = chosen_[id];
      group = chooser_.choose_as_read(entry, group.group);
    }
  }
  const std::optional<ports::DriverInfo>& driver = parts_.driver.info;
  const auto job =
      [setter = setter_, wanted = wanted(),
       machine = LimitSetter::Machine{.gpus = limited_gpus(),
                                      .own_group = parts_.processes.cgroups().of(::getpid()),
                                      .driver = driver ? driver->driver_version : std::string()}] {
        return setter->carry_out(wanted, machine);
      };
  const auto done = [this, number = ++rounds_](LimitRound round) {
    on_round(number, std::move(round));
  };
  if (!wait) {
    worker_->run(job, done);
  } else if (!worker_->run_and_wait(kStartOfDaemon, job, done)) {
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
    end_unlimited();
    parts_.on_change();
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

// A pod whose group is gone has no programs: kubelet removes the group after them.
bool DriverLimits::has_started(const LeaseEntry& entry) const {
  return entry.pod_uid.empty() ? entry.main.has_value() : !chosen(entry).group.empty();
}

// Ends leases that have lost their limit since they started; check_start() refuses a start.
void DriverLimits::end_unlimited() {
  std::map<LeaseId, std::string> refused;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (!is_required(entry) || entry.cause || !has_started(entry)) continue;
    if (starts_.contains(id) || is_unanswered(entry)) continue;
    std::string why = why_not(entry);
    if (why.empty()) {
      failing_since_.erase(id);
      continue;
    }
    const TimePoint now = parts_.loop.now();
    const TimePoint since = failing_since_.try_emplace(id, now).first->second;
    if (!fails_for_now(entry) || now - since >= kDriverPatience) refused[id] = std::move(why);
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
      for (const OthersLimit& below : found->below) {
        others.insert(fmt::format("{} on GPU {} for {}", to_string(below.hard), name, below.group));
      }
    }
  }
  report.problems.assign(problems.begin(), problems.end());
  report.others.assign(others.begin(), others.end());
  if (last_.daemon_in) report.daemon_in = last_.daemon_in->group;
  return report;
}

}  // namespace gpurota::daemon
