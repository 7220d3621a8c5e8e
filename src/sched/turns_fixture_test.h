// Tenants for the tests of Turns that carry out each action at once, and record it.
#pragma once

#include "sched/turns.h"

#include <gtest/gtest.h>

namespace gpurota::sched {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline const GpuUuid kGpu0{"GPU-0"};
inline const GpuUuid kGpu1{"GPU-1"};
constexpr TenantId kA{1}, kB{2}, kC{3}, kA2{4};
constexpr LeaseId kLeaseA{1}, kLeaseB{2}, kLeaseC{3};

class TurnsTest : public testing::Test {
 protected:
  TurnsTest() : TurnsTest(Settings{}) {}
  explicit TurnsTest(const Settings& settings) : turns(settings) {
    (void)turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, {}});
    (void)turns.set_gpu({kGpu1, gib(80), TurnsMode::kAuto, {}});
  }

  // Starts a new daemon, which knows two leases from the last one.
  void begin_anew() {
    LeaseTerms terms;
    terms.gpus = {{kGpu0, gib(78)}};
    for (LeaseId id : {kLeaseA, kLeaseB}) {
      terms.id = id;
      turns.add_lease(terms);
    }
    turns.hold_until(now + seconds(3));
  }

  void add(LeaseId lease, const std::vector<TenantId>& tenants, Bytes memory,
           const std::vector<GpuUuid>& gpus = {kGpu0}, int priority = 0) {
    LeaseTerms terms;
    terms.id = lease;
    terms.priority = priority;
    for (const GpuUuid& gpu : gpus) terms.gpus.push_back({gpu, gib(78)});
    ASSERT_TRUE(turns.check_lease(terms));
    turns.add_lease(terms);
    for (TenantId t : tenants) {
      send(AddTenant{t, lease, {}, false});
      for (const GpuUuid& gpu : gpus) send(Grow{t, gpu, ++seq, memory, false});
    }
  }

  // Adds two leases that do not fit together. Both have allocated their memory, B last.
  void add_two_that_do_not_fit(int priority_of_b = 0) {
    add(kLeaseA, {kA}, gib(70));
    add(kLeaseB, {kB}, gib(70), {kGpu0}, priority_of_b);
    pass(seconds(100));
    ASSERT_TRUE(holds(kLeaseB));
    evicted.clear();
  }

  // Both leases have work, and B's turn has just begun.
  void let_b_begin() {
    work(kA);
    work(kB);
    for (int i = 0; i < 1000 && !holds(kLeaseA); ++i) pass(seconds(1));
    for (int i = 0; i < 1000 && !holds(kLeaseB); ++i) pass(seconds(1));
    ASSERT_TRUE(holds(kLeaseB));
  }

  void send(const Event& event) { take(turns.handle(event, now)); }
  void pass(Duration d) {
    const TimePoint until = now + d;
    for (auto next = turns.next_deadline(); next && *next <= until; next = turns.next_deadline()) {
      now = *next;
      send(Tick{});
    }
    now = until;
    send(Tick{});
  }

  void take(const Actions& actions) {
    for (const Action& action : actions) {
      done.push_back(action);
      queue.push_back(action);
    }
    if (carrying_out) return;
    carrying_out = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Action action = queue[i];
      if (const auto* gate = std::get_if<SetGate>(&action)) on_gate(*gate);
      if (const auto* e = std::get_if<Evict>(&action)) on_evict(*e);
      if (const auto* r = std::get_if<Restore>(&action); r && !lazy.contains(r->tenant)) {
        now += restoring_takes + slow[r->tenant];
        const Bytes used = unused.contains(r->tenant) ? Bytes() : r->bytes;
        send(Restored{r->tenant, r->gpu, used, r->bytes - used, false});
      }
    }
    queue.clear();
    carrying_out = false;
  }

  void on_gate(const SetGate& gate) {
    seen[gate.tenant] = gate.seq;
    if (gate.order == GateOrder::kOpen) open.insert(gate.tenant);
    if (gate.order == GateOrder::kClose) open.erase(gate.tenant);
    if (!silent.contains(gate.tenant)) say(gate.tenant);
  }
  void on_evict(const Evict& e) {
    evicted[e.tenant] += e.bytes;
    ++evictions[e.tenant];
    const bool stays = failing.contains(e.tenant) || hollow.contains(e.tenant);
    const Bytes out = stays ? Bytes() : e.bytes;
    send(Evicted{e.tenant, e.gpu, out, e.bytes - out, failing.contains(e.tenant),
                 Bytes(out.count() / 2)});
  }

  // A tenant that works has something in flight while its gate is open, and waits while its gate is
  // shut.
  void say(TenantId t) {
    const bool runs = open.contains(t);
    const bool busy = stuck.contains(t) || (works.contains(t) && runs);
    const std::uint32_t waiting = works.contains(t) && !runs ? 1 : 0;
    send(TenantStatus{t, seen[t], busy, waiting, busy ? 0 : waiting});
  }
  void work(TenantId t) { works.insert(t), say(t); }
  void rest(TenantId t) { works.erase(t), say(t); }

  template <class T>
  std::vector<T> of() const {
    std::vector<T> found;
    for (const Action& action : done) {
      if (const auto* a = std::get_if<T>(&action)) found.push_back(*a);
    }
    return found;
  }
  bool holds(LeaseId lease) const { return turns.explain(lease, now)->phase == Phase::kHolding; }
  GrowAnswer answer() const { return of<AnswerGrow>().back().answer; }

  Turns turns;
  TimePoint now{seconds(100)};
  Duration restoring_takes{};
  std::map<TenantId, Duration> slow;  // how much longer restoring takes for some tenants
  std::uint32_t seq = 0;
  std::vector<Action> done, queue;
  bool carrying_out = false;
  std::map<TenantId, std::uint32_t> seen;
  std::map<TenantId, Bytes> evicted;
  std::map<TenantId, int> evictions;  // orders
  // hollow: has nothing to evict, whatever it has reported. lazy: gets room, and restores nothing.
  std::set<TenantId> open, works, stuck, silent, failing, hollow, unused, lazy;
};

}  // namespace gpurota::sched
