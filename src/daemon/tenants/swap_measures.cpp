#include "daemon/tenants/swap_measures.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// What is held beside is believed when so many looks agree: 1 s at the default period.
constexpr std::size_t kAgreeingLooks = 4;
// What a program holds that it need not tell of (modules, local memory) is not taken for memory that did not move.
constexpr Bytes kUntold = mib(256);
constexpr Duration kDoubtLasts = std::chrono::hours(1);
// One who comes as so many users has its oldest ones believed again.
constexpr std::size_t kMostDoubted = 4096;

// Whether so much more than it told is most of what it said is out.
bool contradicts(Bytes more, Bytes said_out) {
  return more >= std::max(Bytes(said_out.count() / 2), kUntold);
}

}  // namespace

Maybe<const sched::Holding> SwapMeasures::holding(const SwapTenant& tenant,
                                                  const SwapMemory& memory) const {
  const sched::Residency& all = turns_.turns().residency();
  const auto slot = all.slot_of(memory.gpu);
  return slot ? all.find(tenant.id, *slot) : Maybe<const sched::Holding>();
}

// What turns take it to hold, while nothing of it is on its way.
std::optional<Bytes> SwapMeasures::told(const SwapTenant& tenant, const SwapMemory& memory) const {
  const sched::Holding* held = holding(tenant, memory).if_there();
  if (!held || !held->coming.is_zero() || !held->leaving.is_zero()) return std::nullopt;
  return held->resident + held->wired;
}

void SwapMeasures::before_look(SwapTenant& tenant, const GpuUuid& gpu) const {
  for (SwapMemory& memory : tenant.memory) {
    if (memory.gpu == gpu) memory.told_before = told(tenant, memory);
  }
}

void SwapMeasures::measure(SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample,
                           TimePoint taken) {
  std::optional<Bytes> held;
  bool listed = false;
  for (const GpuProcess& process : sample.processes) {
    if (process.pid != tenant.pid) continue;
    listed = true;
    held = process.used;
  }
  if (tenant.dead) {
    if (taken >= tenant.died) memory.listed = listed;
    return;
  }
  if (!tenant.here) return;
  // Only while it is at rest: what is in motion is counted as if it were there already.
  const auto now = told(tenant, memory);
  if (!now || !memory.told_before) return;
  const Bytes told_most = std::max(*now, *memory.told_before);
  const Bytes contexts = memory.came_back ? memory.unmeasured : Bytes();
  const bool waits = memory.context_since && !memory.unmeasured.is_zero() && !memory.came_back;
  const bool doubted = is_doubted(tenant, memory);
  if (!doubted && listed && !held) return;  // the driver does not say how much
  if (!doubted && held && waits && taken >= *memory.context_since) {
    return measure_context(tenant, memory, *held);
  }
  // A process that is not listed holds nothing.
  const Bytes unexplained = held.value_or(Bytes()) + contexts - told_most;
  if (doubted) return confirm(tenant, memory, unexplained, taken);
  check_claims(tenant, memory, unexplained - contexts, taken);
  settle_beside(tenant, memory, unexplained);
}

void SwapMeasures::settle_beside(SwapTenant& tenant, SwapMemory& memory, Bytes unexplained) {
  std::deque<Bytes>& looks = memory.beside;
  looks.push_back(unexplained);
  if (looks.size() > kAgreeingLooks) looks.pop_front();
  if (looks.size() < kAgreeingLooks) return;
  // It goes on meanwhile: what it is just allocating is granted and not held yet.
  if (memory.came_back) {
    return settle_contexts(tenant, memory, *std::max_element(looks.begin(), looks.end()));
  }
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books) return;
  const Bytes known = books->beside;
  const Bytes least = *std::min_element(looks.begin(), looks.end());
  const Bytes most = *std::max_element(looks.begin(), looks.end());
  const Bytes settled = std::clamp(known, least, most);
  if (settled != known) turns_.feed(sched::Measured{tenant.id, memory.gpu, settled});
}

bool SwapMeasures::doubts(uid_t uid, TimePoint now) const {
  const auto found = doubted_.find(uid);
  return found != doubted_.end() && now < found->second;
}

bool SwapMeasures::expects_look(const SwapTenant& tenant, const SwapMemory& memory) const {
  const bool context = memory.context_since && !memory.unmeasured.is_zero();
  return tenant.dead || context || is_doubted(tenant, memory);
}

bool SwapMeasures::is_doubted(const SwapTenant& tenant, const SwapMemory& memory) const {
  const sched::Holding* books = holding(tenant, memory).if_there();
  return books && !tenant.dead && !books->lingering.is_zero();
}

// Who has its turn has nothing out: looks between two of them count together.
void SwapMeasures::check_claims(const SwapTenant& tenant, SwapMemory& memory, Bytes unexplained,
                                TimePoint taken) {
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books || books->out().is_zero()) return;
  const bool still_there = contradicts(unexplained - books->beside, books->out());
  memory.contradicted = still_there ? memory.contradicted + 1 : 0;
  if (memory.contradicted < kAgreeingLooks) return;
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
  turns_.report({sched::Trouble::kStillThere, tenant.lease, tenant.id, false, memory.gpu});
}

// A context was granted what one may take; this is what it takes. The program waits meanwhile.
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
