#include "daemon/supervised/job_rules.h"

#include "base/text.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace gpurota::daemon {
namespace {

// Checks the job by itself, whatever other jobs there are, and adds its name to `names`.
Result<void> check_alone(const jobs::JobSpec& spec, std::set<std::string>& names) {
  GPUROTA_TRY(jobs::check_spec(spec));
  const auto& options = spec.options;
  if (std::find(options.begin(), options.end(), "--filler") != options.end()) {
    return fail(Code::kInvalid,
                "a job cannot be a filler: leave out --filler, or use 'gpurota filler add'");
  }
  if (names.insert(spec.name).second) return {};
  return fail(Code::kInvalid, fmt::format("job {} appears twice", spec.name));
}

Result<void> check_removed(const JobEntries& entries, uid_t uid,
                           const std::set<std::string>& names) {
  for (const auto& [id, job] : entries) {
    if (job.uid != uid || !job.is_removed() || !names.contains(job.spec.name)) continue;
    return fail(Code::kInvalid, fmt::format("job {} is just being removed: try again when 'gpurota "
                                            "job list' does not show it",
                                            job.spec.name));
  }
  return {};
}

Result<void> check_after(const JobEntries& entries, uid_t uid,
                         const std::vector<WantedJob>& wanted) {
  std::set<std::string> names;
  for (const auto& [id, job] : entries) {
    if (job.uid == uid && !job.is_removed()) names.insert(job.spec.name);
  }
  for (const WantedJob& each : wanted) names.insert(each.spec.name);
  for (const WantedJob& each : wanted) {
    const std::pair<const char*, const std::vector<std::string>&> kinds[] = {
        {"--boot-after", each.spec.after},
        {"--after-success", each.spec.after_success},
        {"--after-end", each.spec.after_end}};
    for (const auto& [option, named] : kinds) {
      for (const std::string& name : named) {
        if (names.contains(name)) continue;
        return fail(
            Code::kInvalid,
            fmt::format("job {} is to be started after {} ({}), but there is no such job: "
                        "add that first, or write both into one file for 'gpurota job apply'",
                        each.spec.name, display_text(name, 64), option));
      }
    }
  }
  return {};
}

// The stored states of items belong to the indices and commands, so these cannot change.
Result<void> check_items_stay(const JobEntries& entries, uid_t uid,
                              const std::vector<WantedJob>& wanted) {
  for (const WantedJob& each : wanted) {
    const JobEntry* const job = find_job(entries, uid, each.spec.name);
    if (job == nullptr) continue;
    if (job->spec.array == each.spec.array && job->spec.each == each.spec.each) continue;
    return fail(Code::kInvalid,
                fmt::format("the items of job {0} cannot be changed: remove it first ('gpurota job "
                            "remove {0}'), or give the new one another name",
                            each.spec.name));
  }
  return {};
}

// A job that is always started again never ends well.
Result<void> check_ends(const std::vector<const jobs::JobSpec*>& specs) {
  std::set<std::string_view> endless;
  for (const jobs::JobSpec* spec : specs) {
    if (spec->restart == jobs::RestartPolicy::kAlways) endless.insert(spec->name);
  }
  for (const jobs::JobSpec* spec : specs) {
    for (const std::string& name : spec->after_success) {
      if (!endless.contains(name)) continue;
      return fail(Code::kInvalid,
                  fmt::format("job {0} would wait for ever: {1} is always started again. Use "
                              "--after-end {1}, or another --restart for {1}",
                              spec->name, name));
    }
  }
  return {};
}

jobs::Before before_of(const JobEntry& job) {
  const jobs::JobState& state = job.life.state();
  return {state.phase, !state.history.empty(), state.removed};
}

// "prepare has ended well".
std::string wish_text(jobs::Link link, const std::string& name) {
  return name + (link == jobs::Link::kSuccess ? " has ended well" : " has ended");
}

std::string never_text(const std::string& name, const JobEntry* job) {
  if (job == nullptr) return fmt::format("there is no job {} any more", name);
  if (job->is_removed()) return fmt::format("{} was removed", name);
  const jobs::JobState& state = job->life.state();
  if (state.phase == jobs::Phase::kCancelled) return fmt::format("{} was cancelled", name);
  return fmt::format("{} has not ended well: {}", name, run_end_text(state));
}

}  // namespace

const JobEntry* find_job(const JobEntries& entries, uid_t uid, const std::string& name) {
  for (const auto& [id, job] : entries) {
    if (job.uid == uid && job.spec.name == name && !job.is_removed()) return &job;
  }
  return nullptr;
}

Result<void> check_together(const JobEntries& entries, uid_t uid,
                            const std::vector<WantedJob>& wanted) {
  std::set<std::string> names;
  for (const WantedJob& each : wanted) GPUROTA_TRY(check_alone(each.spec, names));
  GPUROTA_TRY(check_removed(entries, uid, names));
  std::size_t bytes = 0, items = 0;
  std::vector<jobs::Ordered> order, chain;
  std::vector<const jobs::JobSpec*> specs;
  const auto count = [&](const jobs::JobSpec& spec) {
    bytes += encode(spec).size();
    items += spec.array.count();
    specs.push_back(&spec);
    order.push_back({spec.name, spec.after});
    chain.push_back({spec.name, spec.after_success});
    auto& after = chain.back().after;
    after.insert(after.end(), spec.after_end.begin(), spec.after_end.end());
  };
  for (const auto& [id, job] : entries) {
    if (job.uid == uid && !names.contains(job.spec.name)) count(job.spec);
  }
  for (const WantedJob& each : wanted) count(each.spec);
  if (bytes > kMostJobBytes) {
    return fail(Code::kLimit, "the commands and variables of your jobs together are too long");
  }
  if (order.size() > kMostJobs) {
    return fail(Code::kLimit,
                fmt::format("you can have {} jobs, this would be {}", kMostJobs, order.size()));
  }
  if (items > kMostUserItems) {
    return fail(Code::kLimit,
                fmt::format("your arrays can have {} items together, these would be {}: remove "
                            "arrays that have ended",
                            kMostUserItems, items));
  }
  GPUROTA_TRY(check_items_stay(entries, uid, wanted));
  GPUROTA_TRY(check_after(entries, uid, wanted));
  GPUROTA_TRY(check_ends(specs));
  GPUROTA_TRY(jobs::start_order(order));
  GPUROTA_TRY(jobs::start_order(chain, "--after-success or --after-end"));
  return {};
}

LogChange log_change(const JobEntries& entries, uid_t uid, const std::vector<WantedJob>& wanted) {
  LogChange change;
  for (const WantedJob& each : wanted) {
    const JobEntry* const job = find_job(entries, uid, each.spec.name);
    if (job != nullptr) change.freed += job->log.amount();
    change.added += logs_bound(each.spec).count();
  }
  return change;
}

Chain chain_of(const JobEntries& entries, uid_t uid, const jobs::JobSpec& spec) {
  if (spec.after_success.empty() && spec.after_end.empty()) return {};
  std::map<std::string_view, const JobEntry*> known;
  for (const auto& [id, job] : entries) {
    if (job.uid == uid) known[job.spec.name] = &job;
  }
  std::vector<std::string> waits;
  std::string stopped;
  Chain never;
  const auto check = [&](jobs::Link link, const std::string& name) {
    const auto at = known.find(name);
    const JobEntry* const job = at == known.end() ? nullptr : at->second;
    std::optional<jobs::Before> before;
    if (job) before = before_of(*job);
    const jobs::Verdict verdict = verdict_of(link, before);
    if (verdict == jobs::Verdict::kNever && never.text.empty()) {
      never = {verdict, never_text(name, job)};
    }
    if (verdict != jobs::Verdict::kWaits) return;
    waits.push_back(wish_text(link, name));
    if (before->phase == jobs::Phase::kStopped && stopped.empty()) stopped = name;
  };
  for (const std::string& name : spec.after_success) check(jobs::Link::kSuccess, name);
  for (const std::string& name : spec.after_end) check(jobs::Link::kEnd, name);
  if (!never.text.empty()) return never;
  if (waits.empty()) return {};
  // Each list of the user's jobs contains the text, so its length is bounded.
  constexpr std::size_t kMostNamed = 8;
  if (waits.size() > kMostNamed) {
    const std::size_t others = waits.size() - kMostNamed + 1;
    waits.resize(kMostNamed - 1);
    waits.push_back(fmt::format("{} other jobs have ended", others));
  }
  Chain chain{jobs::Verdict::kWaits, "it starts when "};
  for (std::size_t i = 0; i < waits.size(); ++i) {
    chain.text += (i == 0 ? "" : i + 1 == waits.size() ? " and " : ", ") + waits[i];
  }
  if (!stopped.empty()) chain.text += fmt::format("; {} is stopped and has never run", stopped);
  return chain;
}

Result<bool> must_wait(const JobEntries& entries, uid_t uid, const jobs::JobSpec& spec) {
  const Chain chain = chain_of(entries, uid, spec);
  if (chain.verdict != jobs::Verdict::kNever) return chain.verdict == jobs::Verdict::kWaits;
  return fail(Code::kInvalid,
              fmt::format("job {} cannot start: {}. Start that job again first, or leave it out of "
                          "--after-success",
                          spec.name, chain.text));
}

bool is_settled(jobs::Phase phase) {
  return phase == jobs::Phase::kStopped || phase == jobs::Phase::kFinished ||
         phase == jobs::Phase::kFailed || phase == jobs::Phase::kCancelled;
}

std::vector<std::uint64_t> named_by(const JobEntries& entries, const JobEntry& job) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, other] : entries) {
    const jobs::JobSpec& spec = other.spec;
    if (other.uid != job.uid || other.is_removed() || id == job.id) continue;
    for (const auto* names : {&spec.after, &spec.after_success, &spec.after_end}) {
      if (std::find(names->begin(), names->end(), job.spec.name) == names->end()) continue;
      ids.push_back(id);
      break;
    }
  }
  return ids;
}

std::vector<std::uint64_t> chained_after(const JobEntries& entries, const JobEntry& job) {
  std::vector<std::uint64_t> ids = named_by(entries, job);
  std::erase_if(ids, [&entries](std::uint64_t id) {
    return entries.at(id).life.state().phase != jobs::Phase::kChained;
  });
  return ids;
}

Result<void> check_removal(const JobEntries& entries, const JobEntry& job, bool is_on,
                           const std::vector<std::uint64_t>& together) {
  const std::string& name = job.spec.name;
  if (is_on) {
    return fail(
        Code::kInvalid,
        fmt::format("{0} runs: 'gpurota job remove --force {0}' stops it and removes it", name));
  }
  const auto has = [&name](const std::vector<std::string>& named) {
    return std::find(named.begin(), named.end(), name) != named.end();
  };
  std::string names;
  for (const std::uint64_t id : named_by(entries, job)) {
    if (std::find(together.begin(), together.end(), id) != together.end()) continue;
    const JobEntry& other = entries.at(id);
    const bool waits = other.life.state().phase == jobs::Phase::kChained &&
                       verdict_of(jobs::Link::kEnd, before_of(job)) == jobs::Verdict::kWaits;
    if (!has(other.spec.after) && !waits) continue;
    names += (names.empty() ? "" : ", ") + other.spec.name;
  }
  if (names.empty()) return {};
  return fail(Code::kInvalid, fmt::format("other jobs start after {0}: {1}. 'gpurota job remove "
                                          "--force {0}' removes it, and they no longer name it",
                                          name, names));
}

}  // namespace gpurota::daemon
