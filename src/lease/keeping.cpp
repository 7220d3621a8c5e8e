#include "lease/keeping.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

template <class Key>
Keeping::Milliseconds time_of(const std::map<Key, Keeping::Milliseconds>& times, const Key& key) {
  const auto it = times.find(key);
  return it == times.end() ? Keeping::Milliseconds(0) : it->second;
}

template <class Key>
void set(std::map<Key, Keeping::Milliseconds>& times, const Key& key, Keeping::Milliseconds time) {
  if (time > Keeping::Milliseconds(0)) {
    times[key] = time;
  } else {
    times.erase(key);
  }
}

}  // namespace

bool Keeping::is_open(RequestId request) const {
  return rules_.most != Milliseconds(0) && blocked(request) >= rules_.most;
}

bool Keeping::is_lapsed(const GpuUuid& gpu) const {
  return rules_.most != Milliseconds(0) && kept(gpu) >= rules_.most;
}

bool Keeping::may_protect(RequestId request, Milliseconds waited) const {
  return rules_.longest_wait != Milliseconds(0) && waited >= rules_.longest_wait &&
         protected_for(request) < kProtectedFor;
}

void Keeping::pass(const KeepingFacts& facts, Milliseconds passed) {
  if (passed <= Milliseconds(0)) return;
  for (const RequestId request : facts.blocked) blocked_[request] += passed;
  if (facts.protected_request) protected_for_[*facts.protected_request] += passed;
  const std::set<GpuUuid> kept(facts.kept.begin(), facts.kept.end());
  for (const GpuUuid& gpu : kept) {
    // A time above `most` has no further effect, and would take longer to run down.
    kept_[gpu] = std::max(kept_[gpu], std::min(kept_[gpu] + passed, rules_.most));
  }
  // While a GPU is kept for nobody, its kept time runs down.
  std::map<GpuUuid, Milliseconds> left;
  for (const auto& [gpu, time] : kept_) {
    set(left, gpu, facts.planned_for.contains(gpu) ? time : time - passed);
  }
  kept_ = std::move(left);
}

void Keeping::on_start(RequestId request, const std::vector<GpuUuid>& gpus,
                       const KeepingFacts& facts) {
  for (const GpuUuid& gpu : gpus) {
    const auto planned = facts.planned_for.find(gpu);
    if (planned != facts.planned_for.end() && planned->second == request) kept_.erase(gpu);
  }
  forget(request);
}

void Keeping::forget(RequestId request) {
  blocked_.erase(request);
  protected_for_.erase(request);
}

void Keeping::keep_only(const std::set<RequestId>& requests) {
  std::erase_if(blocked_, [&](const auto& each) { return !requests.contains(each.first); });
  std::erase_if(protected_for_, [&](const auto& each) { return !requests.contains(each.first); });
}

std::optional<Keeping::Milliseconds> Keeping::next_change(const KeepingFacts& facts) const {
  std::optional<Milliseconds> first;
  const auto consider = [&first](Milliseconds left) {
    if (left > Milliseconds(0)) first = std::min(first.value_or(left), left);
  };
  if (facts.protected_request) consider(kProtectedFor - protected_for(*facts.protected_request));
  if (rules_.most == Milliseconds(0)) return first;
  for (const RequestId request : facts.blocked) consider(rules_.most - blocked(request));
  for (const GpuUuid& gpu : facts.kept) consider(rules_.most - kept(gpu));
  return first;
}

Keeping::Milliseconds Keeping::blocked(RequestId request) const {
  return time_of(blocked_, request);
}

Keeping::Milliseconds Keeping::protected_for(RequestId request) const {
  return time_of(protected_for_, request);
}

Keeping::Milliseconds Keeping::kept(const GpuUuid& gpu) const { return time_of(kept_, gpu); }

void Keeping::restore(RequestId request, Milliseconds blocked, Milliseconds protected_for) {
  set(blocked_, request, blocked);
  set(protected_for_, request, protected_for);
}

void Keeping::restore(const GpuUuid& gpu, Milliseconds kept) { set(kept_, gpu, kept); }

}  // namespace gpurota::lease
