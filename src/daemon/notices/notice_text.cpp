#include "daemon/notices/notice_text.h"

#include "base/text.h"
#include "core/local_time.h"
#include "lease/allowance.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace gpurota::daemon {
namespace {

constexpr std::size_t kLongestReason = 200;
constexpr std::size_t kMostPids = 8;

// "14:05" today, "2026-11-20 14:05" on another day.
std::string clock_text(WallTime time, WallTime now) {
  const auto local = [](WallTime when) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
    std::tm fields = {};
    (void)::localtime_r(&seconds, &fields);
    return fields;
  };
  const std::tm at = local(time), today = local(now);
  const bool same_day = at.tm_year == today.tm_year && at.tm_yday == today.tm_yday;
  return same_day ? fmt::format("{:%H:%M}", at) : fmt::format("{:%Y-%m-%d %H:%M}", at);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string in_words(std::chrono::milliseconds left) {
  const auto seconds = std::chrono::round<std::chrono::seconds>(left);
  if (seconds < std::chrono::seconds(90)) {
    const bool minute = seconds == std::chrono::minutes(1);
    return minute ? "1 minute"
                  : fmt::format("{} second{}", seconds.count(), seconds.count() == 1 ? "" : "s");
  }
  if (seconds < std::chrono::hours(1)) {
    return fmt::format("{} minutes", std::chrono::round<std::chrono::minutes>(seconds).count());
  }
  return lease::duration_text(seconds);
}

// The effects of a change on a lease: the new facts, and the names of what changed.
struct Difference {
  std::vector<std::string> facts, things;
  void add(std::string fact, std::string thing) {
    facts.push_back(std::move(fact));
    things.push_back(std::move(thing));
  }
};

void compare_limits(const Lease& before, const Lease& now, Difference& difference) {
  const char* const where = now.gpus.size() == 1 ? "its GPU" : "each GPU";
  for (const LeaseGpu& gpu : now.gpus) {
    const LeaseGpu* const old = before.find_gpu(gpu.uuid);
    if (old == nullptr || !gpu.limit) continue;
    // Report only the first GPU that differs, as the limits are usually the same on all GPUs.
    if (old->limit != gpu.limit) {
      difference.add(fmt::format("has at most {} of {}", to_string(*gpu.limit), where),
                     "memory limit");
    }
    if (old->soft_limit != gpu.soft_limit && gpu.soft_limit) {
      difference.add(fmt::format("has a soft limit of {}", to_string(*gpu.soft_limit)),
                     "soft limit");
    }
    if (old->limit != gpu.limit || old->soft_limit != gpu.soft_limit) return;
  }
}

void compare_compute(const ComputeShare& before, const ComputeShare& now, Difference& difference) {
  if (before.least != now.least) {
    difference.add(now.least != 0 ? fmt::format("has {} % of the GPU's compute time", now.least)
                                  : std::string("has no share of the GPU's compute time"),
                   "compute time");
  }
  if (before.most != now.most) {
    difference.add(now.most != 0
                       ? fmt::format("has at most {} % of the GPU's compute time", now.most)
                       : std::string("has no upper bound of the GPU's compute time"),
                   "upper bound of the compute time");
  }
}

Difference compare(const Lease& before, const Lease& now, WallTime time) {
  Difference difference;
  if (before.ends != now.ends && now.ends) {
    difference.add("ends at " + clock_text(*now.ends, time), "timeout");
  }
  compare_limits(before, now, difference);
  if (before.priority != now.priority) {
    difference.add(fmt::format("has priority {}", now.priority), "priority");
  }
  if (before.quantum != now.quantum) {
    difference.add(now.quantum && now.quantum->count() > 0
                       ? fmt::format("has turns of {} ms", now.quantum->count())
                       : "has turns as long as moving its memory asks for",
                   "quantum");
  }
  compare_compute(before.compute(), now.compute(), difference);
  if (before.latency != now.latency) {
    difference.add(fmt::format("is {}", to_string(now.latency)), "latency class");
  }
  if (before.warning != now.warning) {
    difference.add(now.warning.is_set() ? fmt::format("is warned by SIG{} {} before its end",
                                                      warning_signal_name(now.warning.signal),
                                                      lease::duration_text(now.warning.before))
                                        : std::string("is no longer warned before its end"),
                   "warning");
  }
  if (before.note != now.note) {
    difference.add(fmt::format("has the note \"{}\"", display_text(now.note, 60)), "note");
  }
  return difference;
}

std::string pids_text(const std::vector<pid_t>& pids) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pids.size(), kMostPids); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", pids[i]);
  }
  return pids.size() > kMostPids ? text + ", …" : text;
}

}  // namespace

std::string said_text(const std::string& reason) {
  return reason.empty() ? "" : fmt::format(": \"{}\"", display_text(reason, kLongestReason));
}

std::string ends_soon_text(LeaseId lease, std::chrono::milliseconds left) {
  return fmt::format("{0} ends in {1}; to keep it: gpurota update {0} --for 2h", to_string(lease),
                     in_words(left));
}

std::string warned_text(LeaseId lease, std::chrono::milliseconds left, bool leaves,
                        const EndWarning& warning, int processes) {
  return fmt::format("{} {} in {}{}: SIG{} was sent to {} of its processes", to_string(lease),
                     leaves ? "leaves for a booking" : "ends",
                     in_words(std::max(left, std::chrono::milliseconds(0))),
                     leaves ? " at the earliest" : "", warning_signal_name(warning.signal),
                     processes);
}

std::string begins_soon_text(RequestId booking, const std::string& gpus, WallTime begins,
                             WallTime now) {
  return fmt::format("your booking {0} of {1} begins at {2}; to cancel it: gpurota cancel {0}",
                     to_string(booking), gpus, local_time_text(begins, now));
}

std::string leaves_soon_text(LeaseId lease, const std::string& gpus, WallTime begins,
                             const std::string& user, RequestId booking, WallTime now) {
  return fmt::format("{}: {} at least until {} ({}'s booking {})", to_string(lease), gpus,
                     local_time_text(begins, now), display_text(user, 32), to_string(booking));
}

std::string changed_text(const Lease& before, const Lease& now, const std::string& who,
                         const std::string& reason, WallTime time) {
  const Difference difference = compare(before, now, time);
  if (difference.facts.empty()) return {};
  const std::string said =
      reason.empty() ? "" : fmt::format(" (\"{}\")", display_text(reason, kLongestReason));
  return fmt::format("{} now {}: {} changed its {}{}", to_string(now.id), joined(difference.facts),
                     who, joined(difference.things), said);
}

std::string ended_text(LeaseId lease, const std::string& why) {
  const std::string shown = display_text(why, 400);
  if (shown.starts_with("it ")) return to_string(lease) + shown.substr(2);
  return fmt::format("{} has ended{}{}", to_string(lease), shown.empty() ? "" : ": ", shown);
}

std::string left_text(LeaseId lease, const std::string& why) {
  return fmt::format("{} ended: {}", to_string(lease), display_text(why, 400));
}

std::string outlived_text(LeaseId lease, config::Expired policy) {
  return fmt::format(
      "the time of {0} is over; its programs run on{1}. To keep it: gpurota update {0} --for 2h",
      to_string(lease), policy == config::Expired::kYield ? " until somebody needs its GPUs" : "");
}

std::string cancelled_text(RequestId request, const std::string& why) {
  const std::string shown = display_text(why, 400);
  return fmt::format("your request {}{}", to_string(request),
                     shown.starts_with("it ") ? shown.substr(2) : " has ended: " + shown);
}

std::string program_text(const std::string& who, const std::string& did, const std::string& what,
                         const std::string& name, const std::string& reason) {
  return fmt::format("{} {} your {} {}{}", who, did, what, display_text(name, 64),
                     said_text(reason));
}

std::string job_end_text(NoticeKind kind, const std::string& job, const std::string& why) {
  const std::string name = display_text(job, 64);
  const std::string reason = (why.empty() ? "" : ": ") + display_text(why, 300);
  if (kind == NoticeKind::kJobFinished) return fmt::format("your job {} has finished", name);
  if (kind == NoticeKind::kJobCancelled) {
    return fmt::format("your job {0} was cancelled{1} (gpurota job show {0})", name, reason);
  }
  return fmt::format("your job {0} has failed{1} (gpurota job logs {0})", name, reason);
}

// ": 3 GiB"; empty if the amount is unknown.
std::string amount(const FoundUse& found) {
  return found.used ? ": " + to_string(*found.used) : std::string();
}

std::string victim_text(const FoundUse& found) {
  std::string what = found.processes == 0 ? "somebody hidden" : found.user;
  if (found.pids.size() == 1) {
    what = fmt::format("{}'s process {}", found.user, found.pids.front());
  } else if (!found.pids.empty()) {
    what = fmt::format("{}'s processes {}", found.user, pids_text(found.pids));
  }
  return fmt::format("{} use{} {}, which is yours ({}){}", what, found.pids.size() > 1 ? "" : "s",
                     found.gpu, to_string(found.lease.value_or(LeaseId())), amount(found));
}

std::string culprit_text(const FoundUse& found) {
  const bool several = found.pids.size() > 1;
  const std::string what = fmt::format("your process{} {} use{} {}", several ? "es" : "",
                                       pids_text(found.pids), several ? "" : "s", found.gpu);
  if (found.kind == watch::FindingKind::kUnreservedUse) {
    return fmt::format("{} without a lease{}; start your programs with 'gpurota run'", what,
                       amount(found));
  }
  return fmt::format("{}, which {} has ({}): please stop {}", what, found.owner,
                     to_string(found.lease.value_or(LeaseId())), several ? "them" : "it");
}

std::string elsewhere_text(LeaseId lease, const std::vector<std::string>& gpus) {
  return fmt::format(
      "; it was started in {}, which has GPU {}: let it keep the CUDA_VISIBLE_DEVICES that it is "
      "given",
      to_string(lease), joined(gpus));
}

std::string merged_text(std::uint64_t count, const std::string& last) {
  return fmt::format(
      "{} notices like this one, of which this is the last: {} ('gpurota events' has all)", count,
      last);
}

}  // namespace gpurota::daemon
