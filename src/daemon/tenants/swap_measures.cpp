#include "daemon/tenants/swap_measures.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// How many samples must agree on the memory that is held beyond the reports: 1 s at the default
// period.
constexpr std::size_t kAgreeingSamples = 4;
// A smaller difference may be memory that a program need not report (modules, local memory), and is
// not taken for memory that did not move.
constexpr Bytes kUnreported = mib(256);
constexpr Duration kDoubtLasts = std::chrono::hours(1);
// The most users that are doubted at a time. With more of them, the users that were doubted first
// are believed again.
constexpr std::size_t kMostDoubted = 4096;

// Whether a difference of `apart` contradicts a report of `said`, which is the case if `apart` is
// at least half of `said` and at least kUnreported.
bool contradicts(Bytes apart, Bytes said) {
  return apart >= std::max(Bytes(said.count() / 2), kUnreported);
}

const GpuProcess* find_process(const GpuSample& sample, pid_t pid) {
  const auto at = std::find_if(sample.processes.begin(), sample.processes.end(),
                               [&](const GpuProcess& each) { return each.pid == pid; });
  return at == sample.processes.end() ? nullptr : &*at;
}

bool lists_memory(const GpuSample& sample) {
  return std::any_of(sample.processes.begin(), sample.processes.end(),
                     [](const auto& process) { return !process.used.value_or(Bytes()).is_zero(); });
}

}  // namespace

Maybe<const sched::Holding> SwapMeasures::holding(const SwapTenant& tenant,
                                                  const SwapMemory& memory) const {
  const sched::Residency& all = turns_.turns().residency();
  const auto slot = all.slot_of(memory.gpu);
  return slot ? all.find(tenant.id, *slot) : Maybe<const sched::Holding>();
}

// The memory that the tenant holds on that GPU as far as turns know. Nothing while some of the
// tenant's memory is being moved.
std::optional<Bytes> SwapMeasures::told(const SwapTenant& tenant, const SwapMemory& memory) const {
  const sched::Holding* held = holding(tenant, memory).if_there();
  if (!held || !held->coming.is_zero() || !held->leaving.is_zero()) return std::nullopt;
  return held->resident + held->wired;
}

void SwapMeasures::before_sample(SwapTenant& tenant, const GpuUuid& gpu) const {
  for (SwapMemory& memory : tenant.memory) {
    if (memory.gpu == gpu) memory.told_before = told(tenant, memory);
  }
}

void SwapMeasures::measure(SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample,
                           TimePoint taken) {
  const GpuProcess* const process = find_process(sample, tenant.pid());
  const bool listed = process != nullptr;
  // A process that is listed without a figure has an unknown amount.
  const bool is_known = listed && process->used.has_value();
  const Bytes held = is_known ? process->used.value_or(Bytes()) : Bytes();
  memory.shown = memory.shown || !held.is_zero();
  if (tenant.dead) {
    if (taken >= tenant.died) memory.listed = listed;
    return;
  }
  if (!tenant.here) return;
  // Measure only while none of the tenant's memory is being moved, because memory in motion is
  // counted as if it had arrived.
  const auto now = told(tenant, memory);
  if (!now || !memory.told_before) return;
  const Bytes told_most = std::max(*now, *memory.told_before);
  if (memory.unproven) check_return(tenant, memory, sample, std::min(*now, *memory.told_before));
  const Bytes contexts = memory.came_back ? memory.unmeasured : Bytes();
  const bool waits = memory.context_since && !memory.unmeasured.is_zero() && !memory.came_back;
  const bool doubted = is_doubted(tenant, memory);
  if (!doubted && listed && !is_known) return;  // the driver does not say how much
  if (!doubted && is_known && waits && taken >= *memory.context_since) {
    return measure_context(tenant, memory, held);
  }
  // A process that is not listed holds nothing.
  const Bytes unexplained = held + contexts - told_most;
  if (doubted) return confirm(tenant, memory, unexplained, taken);
  check_claims(tenant, memory, unexplained - contexts, taken);
  settle_beside(tenant, memory, unexplained);
}

// Checks the first report of a tenant to this daemon: the memory is there only if the driver shows
// it. A driver that lists no memory of any process proves nothing.
void SwapMeasures::check_return(const SwapTenant& tenant, SwapMemory& memory,
                                const GpuSample& sample, Bytes told_least) {
  const GpuProcess* const process = find_process(sample, tenant.pid());
  if (!lists_memory(sample) || (process && !process->used)) return;
  const Bytes seen = process ? *process->used : Bytes();
  if (!contradicts(told_least - seen, told_least)) {
    memory.unproven = false;
    return;
  }
  if (++memory.unseen < kAgreeingSamples) return;
  take_off(tenant, memory);
  memory.unproven = false;
  turns_.report({sched::Trouble::kNotThere, tenant.lease, tenant.id, false, memory.gpu, {}});
}

bool SwapMeasures::has_vanished(const SwapTenant& tenant, SwapMemory& memory,
                                const GpuSample& sample, TimePoint taken) const {
  const GpuProcess* const process = find_process(sample, tenant.pid());
  const bool has_none = !process || (process->used && process->used->is_zero());
  const sched::Holding* books = holding(tenant, memory).if_there();
  const bool should = books && !(books->resident + books->coming + books->wired).is_zero();
  const bool silent =
      tenant.asked && tenant.here && tenant.connected && !tenant.dead && !tenant.stopped;
  if (!memory.shown || !has_none || !should || !silent) {
    memory.vanished.reset();
    return false;
  }
  if (!memory.vanished) memory.vanished = taken;
  return taken >= *memory.vanished + config_.turns.yield_deadline;
}

void SwapMeasures::take_off(const SwapTenant& tenant, const SwapMemory& memory) {
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books) return;
  const sched::Holding had = *books;
  if (!had.coming.is_zero()) {
    turns_.feed(sched::Restored{tenant.id, memory.gpu, {}, had.coming, false});
  }
  turns_.feed(sched::Shrink{tenant.id, memory.gpu, had.resident, {}, had.wired});
}

Bytes SwapMeasures::seen_before(const SwapTenant& tenant, const SwapTenant* before,
                                const SwapMemory& memory) const {
  const sched::Holding* const was = before ? holding(*before, memory).if_there() : nullptr;
  if (!was) return turns_.seen_of(tenant.pid(), memory.gpu);
  return was->resident + was->wired + was->beside + was->lingering;
}

void SwapMeasures::settle_beside(SwapTenant& tenant, SwapMemory& memory, Bytes unexplained) {
  std::deque<Bytes>& latest = memory.beside;
  latest.push_back(unexplained);
  if (latest.size() > kAgreeingSamples) latest.pop_front();
  if (latest.size() < kAgreeingSamples) return;
  // The tenant continues to run during samples: memory that it is just allocating is granted, but
  // not held yet. So the highest sample counts for contexts.
  if (memory.came_back) {
    return settle_contexts(tenant, memory, *std::max_element(latest.begin(), latest.end()));
  }
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books) return;
  const Bytes known = books->beside;
  const Bytes least = *std::min_element(latest.begin(), latest.end());
  const Bytes most = *std::max_element(latest.begin(), latest.end());
  const Bytes settled = std::clamp(known, least, most);
  if (settled != known) turns_.feed(sched::Measured{tenant.id, memory.gpu, settled});
}

bool SwapMeasures::doubts(uid_t uid, TimePoint now) const {
  const auto found = doubted_.find(uid);
  return found != doubted_.end() && now < found->second;
}

bool SwapMeasures::expects_sample(const SwapTenant& tenant, const SwapMemory& memory) const {
  const bool context = memory.context_since && !memory.unmeasured.is_zero();
  return tenant.dead || context || is_doubted(tenant, memory);
}

bool SwapMeasures::is_doubted(const SwapTenant& tenant, const SwapMemory& memory) const {
  const sched::Holding* books = holding(tenant, memory).if_there();
  return books && !tenant.dead && !books->lingering.is_zero();
}

// In its turn a tenant has no evicted memory, so all samples between two of its turns count
// together.
void SwapMeasures::check_claims(const SwapTenant& tenant, SwapMemory& memory, Bytes unexplained,
                                TimePoint taken) {
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books || books->out().is_zero()) return;
  const bool still_there = contradicts(unexplained - books->beside, books->out());
  memory.contradicted = still_there ? memory.contradicted + 1 : 0;
  if (memory.contradicted < kAgreeingSamples) return;
  memory.contradicted = 0;
  doubt(tenant, memory, taken);
  turns_.feed(sched::Measured{tenant.id, memory.gpu, unexplained});
}

void SwapMeasures::confirm(const SwapTenant& tenant, SwapMemory& memory, Bytes unexplained,
                           TimePoint taken) {
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books) return;
  if (contradicts(unexplained - books->beside, books->lingering)) {
    doubt(tenant, memory, taken);
  }
  memory.beside.clear();
  turns_.feed(sched::Measured{tenant.id, memory.gpu, unexplained, true});
}

void SwapMeasures::doubt(const SwapTenant& tenant, const SwapMemory& memory, TimePoint now) {
  std::erase_if(doubted_, [&](const auto& entry) { return entry.second <= now; });
  if (doubted_.size() >= kMostDoubted) {
    doubted_.erase(
        std::min_element(doubted_.begin(), doubted_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  doubted_[tenant.uid] = now + kDoubtLasts;
  turns_.report({sched::Trouble::kStillThere, tenant.lease, tenant.id, false, memory.gpu, {}});
}

// Replaces the amount that was granted for a context by the measured size. The program waits
// meanwhile.
void SwapMeasures::measure_context(SwapTenant& tenant, SwapMemory& memory, Bytes held) {
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books) return;
  const Bytes takes = held - (books->resident + books->wired - memory.unmeasured);
  if (memory.contexts == 1 && !takes.is_zero()) {
    grants_.learn_context_cost(memory.gpu, takes);
  }
  settle_contexts(tenant, memory, takes);
}

void SwapMeasures::settle_contexts(SwapTenant& tenant, SwapMemory& memory, Bytes takes) {
  const Bytes granted = memory.unmeasured;
  memory.unmeasured = Bytes();
  memory.context_since.reset();
  memory.came_back = false;
  memory.beside.clear();
  if (takes.is_zero()) return;
  if (takes < granted) {
    turns_.feed(sched::Shrink{tenant.id, memory.gpu, {}, {}, granted - takes});
  } else if (takes > granted) {
    turns_.feed(sched::Measured{tenant.id, memory.gpu, takes - granted});
  }
}

}  // namespace gpurota::daemon
