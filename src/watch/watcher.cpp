#include "watch/watcher.h"

#include "watch/classify.h"

#include <algorithm>
#include <array>

namespace gpurota::watch {
namespace {

// A finding of unreserved use continues until clearly below the threshold, so that a program whose
// use varies around the threshold is reported once.
constexpr std::uint64_t kHysteresis = 8;  // an eighth

constexpr std::array kKindNames = {"unreserved_use", "foreign_use", "over_limit", "unused",
                                   "not_limited"};

const SeenLease* exclusive_lease(const Reading& reading) {
  for (const SeenLease& lease : reading.leases) {
    if (!lease.limit && !lease.filler) return &lease;
  }
  return nullptr;
}

Bytes sum_of(const std::vector<SeenProcess>& processes) {
  Bytes sum;
  for (const SeenProcess& process : processes) sum += process.used.value_or(Bytes());
  return sum;
}

bool any_unknown(const std::vector<SeenProcess>& processes) {
  return std::any_of(processes.begin(), processes.end(),
                     [](const SeenProcess& p) { return !p.used; });
}

std::map<std::optional<uid_t>, std::vector<SeenProcess>> by_user(
    const std::vector<SeenProcess>& processes) {
  std::map<std::optional<uid_t>, std::vector<SeenProcess>> users;
  for (const SeenProcess& process : processes) users[process.uid].push_back(process);
  return users;
}

Finding make(FindingKind kind, const Reading& reading, std::optional<uid_t> uid,
             std::optional<LeaseId> lease, std::vector<SeenProcess> processes) {
  Finding finding;
  finding.kind = kind;
  finding.gpu = reading.gpu;
  finding.uid = uid;
  finding.lease = lease;
  const Bytes sum = sum_of(processes);
  if (!sum.is_zero() || !any_unknown(processes)) finding.used = sum;
  finding.container = std::any_of(processes.begin(), processes.end(),
                                  [](const SeenProcess& p) { return p.container; });
  if (finding.container && !is_of_its_lease(kind)) {
    for (const SeenLease& each : reading.leases) {
      if (each.starts_containers) finding.perhaps_of = each.id;
    }
  }
  finding.processes = std::move(processes);
  return finding;
}

std::pair<pid_t, std::uint64_t> identity(const SeenProcess& process) {
  return {process.pid, process.start_ticks};
}

}  // namespace

std::vector<Finding> Watcher::findings(bool seen_only) const {
  std::vector<Finding> all;
  for (const auto& [key, open] : open_) {
    if (open.seen || !seen_only) all.push_back(open.finding);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return all;
}

std::vector<Age> Watcher::ages(TimePoint now) const {
  std::vector<Age> all;
  for (const auto& [key, open] : open_) {
    const Finding& finding = open.finding;
    if (finding.kind != FindingKind::kUnreservedUse && finding.kind != FindingKind::kForeignUse) {
      continue;
    }
    Age age{finding.kind, finding.gpu, finding.uid, finding.lease, finding.since};
    // Store the oldest process: a replacement is always younger.
    for (const SeenProcess& process : finding.processes) {
      const bool older = age.process.second == 0 || process.start_ticks < age.process.second;
      if (process.start_ticks != 0 && older) age.process = identity(process);
    }
    all.push_back(age);
  }
  for (const auto& [key, last] : last_use_) {
    if (now - last < kLeastAge) continue;
    all.push_back({FindingKind::kUnused, key.second, std::nullopt, key.first, last});
  }
  if (now - restored_at_ < kAgesKept) all.insert(all.end(), restored_.begin(), restored_.end());
  return all;
}

void Watcher::restore(std::vector<Age> ages, TimePoint now) {
  restored_ = std::move(ages);
  restored_at_ = now;
}

std::optional<TimePoint> Watcher::take_restored(const Age& like,
                                                const std::vector<SeenProcess>& processes,
                                                TimePoint now) {
  if (restored_.empty()) return std::nullopt;
  if (now - restored_at_ >= kAgesKept) {
    restored_.clear();
    return std::nullopt;
  }
  const auto found = std::find_if(restored_.begin(), restored_.end(), [&](const Age& age) {
    const bool same = age.kind == like.kind && age.gpu == like.gpu && age.uid == like.uid &&
                      age.lease == like.lease;
    if (!same || age.process.second == 0) return same;
    return std::any_of(processes.begin(), processes.end(), [&](const SeenProcess& process) {
      return identity(process) == age.process;
    });
  });
  if (found == restored_.end()) return std::nullopt;
  const TimePoint since = std::min(found->since, now);
  restored_.erase(found);
  return since;
}

bool Watcher::has_open(const GpuUuid& gpu) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&](const auto& entry) { return std::get<0>(entry.first) == gpu; });
}

Watcher::Strays Watcher::sort_out(const Reading& reading, const Policy& policy, TimePoint now) {
  Strays strays;
  std::erase_if(gone_since_, [&](const auto& entry) {
    return entry.first.first == reading.gpu &&
           std::none_of(
               reading.processes.begin(), reading.processes.end(),
               [&](const SeenProcess& p) { return p.gone && p.pid == entry.first.second; });
  });
  const SeenLease* const exclusive = exclusive_lease(reading);
  for (const SeenProcess& process : reading.processes) {
    if (is_ignored(process, policy) || covering_lease(process, reading)) continue;
    if (process.gone) {
      // The process ended between the driver's list and ours, and its memory is being freed. If it
      // stays listed, it is a process that we cannot see.
      const TimePoint since =
          gone_since_.try_emplace({reading.gpu, process.pid}, now).first->second;
      if (now - since < policy.gone_patience) continue;
    }
    (exclusive ? strays.foreign : strays.unreserved).push_back(process);
  }
  return strays;
}

void Watcher::add_unreserved(const Reading& reading, const Policy& policy,
                             const std::vector<SeenProcess>& processes, Candidates& out) const {
  const Bytes accounted = sum_of(reading.processes);
  // If NVML gives no figures for some processes and the GPU has no lease, the rest of the memory in
  // use counts as theirs.
  const bool figures = !any_unknown(reading.processes);
  const Bytes rest =
      figures || !reading.leases.empty() ? Bytes() : reading.used.value_or(Bytes()) - accounted;
  const auto is_much = [&](const std::vector<SeenProcess>& some, const Key& key) {
    if (policy.threshold.is_zero()) return !some.empty();
    const Bytes used = sum_of(some) + (any_unknown(some) ? rest : Bytes());
    const Bytes slack(is_open(key) ? policy.threshold.count() / kHysteresis : 0);
    return used > policy.threshold - slack;
  };
  const auto users = by_user(processes);
  const auto add = [&](std::optional<uid_t> uid, const std::vector<SeenProcess>& theirs) {
    const Key key{reading.gpu, FindingKind::kUnreservedUse, uid, std::nullopt};
    out[key] = {make(FindingKind::kUnreservedUse, reading, uid, std::nullopt, theirs), theirs};
  };
  for (const auto& [uid, theirs] : users) {
    if (is_much(theirs, {reading.gpu, FindingKind::kUnreservedUse, uid, std::nullopt})) {
      add(uid, theirs);
    }
  }
  // No user alone is above the threshold, but all together are.
  if (out.empty() && is_much(processes, {})) {
    for (const auto& [uid, theirs] : users) add(uid, theirs);
  }
  if (!reading.hidden.in_use) return;
  const Key nobody{reading.gpu, FindingKind::kUnreservedUse, std::nullopt, std::nullopt};
  auto& candidate = out[nobody];
  if (candidate.finding.gpu != reading.gpu) {
    candidate.finding = make(FindingKind::kUnreservedUse, reading, std::nullopt, std::nullopt, {});
  }
  candidate.finding.used = candidate.finding.used.value_or(Bytes()) + reading.hidden.bytes;
}

void Watcher::add_foreign(const Reading& reading, const Policy&,
                          const std::vector<SeenProcess>& processes, Candidates& out) const {
  const SeenLease* const victim = exclusive_lease(reading);
  if (!victim) return;
  for (const auto& [uid, theirs] : by_user(processes)) {
    const Key key{reading.gpu, FindingKind::kForeignUse, uid, victim->id};
    out[key] = {make(FindingKind::kForeignUse, reading, uid, victim->id, theirs), theirs};
  }
}

void Watcher::add_over_limit(const Reading& reading, const Policy& policy, Candidates& out) const {
  for (const SeenLease& lease : reading.leases) {
    if (!lease.limit || lease.ending) continue;
    std::vector<SeenProcess> members, outsiders;
    for (const SeenProcess& process : reading.processes) {
      if (owning_lease(process, reading) != &lease) continue;
      members.push_back(process);
      if (!process.tenant) outsiders.push_back(process);
    }
    const Bytes used = sum_of(members);
    if (used <= *lease.limit + policy.tolerance) continue;
    // Stop the processes that evade the library first: the others were granted what they hold.
    const bool enough = used - sum_of(outsiders) <= *lease.limit + policy.tolerance;
    const Key key{reading.gpu, FindingKind::kOverLimit, lease.uid, lease.id};
    out[key] = {make(FindingKind::kOverLimit, reading, lease.uid, lease.id, members),
                enough ? outsiders : members};
  }
}

void Watcher::add_not_limited(const Reading& reading, const Policy& policy, TimePoint now,
                              Candidates& out) {
  std::set<std::pair<pid_t, std::uint64_t>> silent;
  // The driver's pids are not of our pid namespace: they cannot be matched to processes.
  const bool strange_pids =
      std::any_of(reading.processes.begin(), reading.processes.end(), [&](const SeenProcess& p) {
        const auto gone = gone_since_.find({reading.gpu, p.pid});
        const bool stays = gone != gone_since_.end() && now - gone->second >= policy.gone_patience;
        return stays && p.start_ticks == 0;
      });
  for (const SeenLease& lease : reading.leases) {
    if (lease.ending) continue;
    std::vector<SeenProcess> found;
    for (const SeenProcess& process : reading.processes) {
      if (is_ignored(process, policy) || !is_not_limited(process, lease, reading)) continue;
      silent.insert(identity(process));
      const TimePoint since =
          silent_since_.try_emplace({reading.gpu, process.pid, process.start_ticks}, now)
              .first->second;
      if (now - since >= policy.silent_patience && !strange_pids) found.push_back(process);
    }
    if (found.empty()) continue;
    const Key key{reading.gpu, FindingKind::kNotLimited, lease.uid, lease.id};
    out[key] = {make(FindingKind::kNotLimited, reading, lease.uid, lease.id, found), found};
  }
  std::erase_if(silent_since_, [&](const auto& entry) {
    const auto& [gpu, pid, start_ticks] = entry.first;
    return gpu == reading.gpu && !silent.contains({pid, start_ticks});
  });
}

void Watcher::add_unused(const Reading& reading, const Policy& policy, TimePoint now,
                         Candidates& out) {
  std::erase_if(last_use_, [&](const auto& entry) {
    return entry.first.second == reading.gpu &&
           std::none_of(reading.leases.begin(), reading.leases.end(),
                        [&](const SeenLease& lease) { return lease.id == entry.first.first; });
  });
  for (const SeenLease& lease : reading.leases) {
    const auto [known, is_new] = last_use_.try_emplace({lease.id, reading.gpu}, now);
    TimePoint& last = known->second;
    if (is_new) {
      const Age like{FindingKind::kUnused, reading.gpu, std::nullopt, lease.id, now};
      last = take_restored(like, {}, now).value_or(now);
    }
    const bool used = std::any_of(
        reading.processes.begin(), reading.processes.end(),
        [&](const SeenProcess& process) { return covering_lease(process, reading) == &lease; });
    // Where the list of processes may be incomplete, no lease counts as idle.
    if (used || lease.parked || !reading.lists_processes) last = now;
    if (lease.ending || lease.filler || policy.unused_after == Duration::zero()) continue;
    if (now - last < policy.unused_after) continue;
    const Key key{reading.gpu, FindingKind::kUnused, lease.uid, lease.id};
    Candidate& candidate = out[key];
    candidate.finding = make(FindingKind::kUnused, reading, lease.uid, lease.id, {});
    candidate.finding.since = last;
  }
}

void Watcher::merge(const Reading& reading, const Policy& policy, Candidates found, TimePoint now,
                    std::vector<Step>& steps) {
  for (auto& each : found) {
    Candidate& candidate = each.second;
    Finding& fresh = candidate.finding;
    fresh.action = policy.action ? policy.action(fresh.kind, fresh.uid) : Action::kReport;
    Open& open = open_[each.first];
    const bool begun = open.readings == 0;
    fresh.id = begun ? FindingId{++last_id_} : open.finding.id;
    if (!begun) {
      fresh.since = open.finding.since;
    } else if (fresh.kind != FindingKind::kUnused) {
      const Age like{fresh.kind, reading.gpu, fresh.uid, fresh.lease, now};
      fresh.since = take_restored(like, fresh.processes, now).value_or(now);
    }
    open.finding = std::move(fresh);
    open.targets = std::move(candidate.targets);
    open.last_seen = now;
    ++open.readings;
    open.seen = true;
    if (begun) steps.push_back({Step::What::kBegun, open.finding, {}});
    if (open.finding.action == Action::kStop && open.readings > 1) stop(open, policy, now, steps);
  }
  for (auto it = open_.begin(); it != open_.end();) {
    const bool elsewhere = std::get<0>(it->first) != reading.gpu || found.contains(it->first);
    if (!elsewhere) it->second.seen = false;
    const Finding& finding = it->second.finding;
    const bool lease_gone =
        finding.lease && std::none_of(reading.leases.begin(), reading.leases.end(),
                                      [&](const SeenLease& l) { return l.id == finding.lease; });
    const bool over = now - it->second.last_seen >= policy.clear_after || lease_gone ||
                      finding.kind == FindingKind::kUnused;
    if (elsewhere || !over) {
      ++it;
      continue;
    }
    steps.push_back({Step::What::kEnded, finding, {}});
    it = open_.erase(it);
  }
}

void Watcher::stop(Open& open, const Policy& policy, TimePoint now, std::vector<Step>& steps) {
  std::vector<SeenProcess> ask, kill;
  for (const SeenProcess& process : open.targets) {
    if (process.start_ticks == 0) continue;
    const auto [told, first] = open.told.try_emplace(identity(process), now);
    if (first) {
      ask.push_back(process);
    } else if (now - told->second >= policy.stop_grace &&
               open.killed.insert(identity(process)).second) {
      kill.push_back(process);
    }
  }
  if (!ask.empty()) steps.push_back({Step::What::kTerminate, open.finding, std::move(ask)});
  if (!kill.empty()) steps.push_back({Step::What::kKill, open.finding, std::move(kill)});
}

void Watcher::release_unused(const Reading& reading, const Policy& policy, TimePoint now,
                             std::vector<Step>& steps) {
  // The daemon may not know yet what ran before it started.
  if (!policy.may_release) return;
  for (const SeenLease& lease : reading.leases) {
    // A lease that uses one of its GPUs is in use.
    int unused = 0;
    Open* here = nullptr;
    for (auto& [key, open] : open_) {
      const bool ripe = open.finding.kind == FindingKind::kUnused &&
                        open.finding.lease == lease.id && open.finding.action == Action::kStop &&
                        now - open.finding.since >= policy.unused_after + policy.unused_grace;
      if (!ripe) continue;
      ++unused;
      if (open.finding.gpu == reading.gpu) here = &open;
    }
    if (!here || here->released || unused < lease.gpus) continue;
    here->released = true;
    steps.push_back({Step::What::kRelease, here->finding, {}});
  }
}

std::vector<Step> Watcher::decide(const Reading& reading, const Policy& policy, TimePoint now) {
  Candidates found;
  const Strays strays = sort_out(reading, policy, now);
  add_unreserved(reading, policy, strays.unreserved, found);
  add_foreign(reading, policy, strays.foreign, found);
  add_over_limit(reading, policy, found);
  add_not_limited(reading, policy, now, found);
  add_unused(reading, policy, now, found);
  std::vector<Step> steps;
  merge(reading, policy, std::move(found), now, steps);
  release_unused(reading, policy, now, steps);
  return steps;
}

bool is_of_its_lease(FindingKind kind) {
  return kind == FindingKind::kOverLimit || kind == FindingKind::kNotLimited;
}

const char* to_string(FindingKind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }

std::optional<FindingKind> parse_finding_kind(std::string_view word) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (word == kKindNames.at(i)) return static_cast<FindingKind>(i);
  }
  return std::nullopt;
}

const char* to_string(Action action) {
  constexpr std::array kNames = {"report", "notify", "stop"};
  return kNames.at(static_cast<std::size_t>(action));
}

}  // namespace gpurota::watch
