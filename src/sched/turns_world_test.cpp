#include "sched/turns_promises_test.h"

#include <algorithm>
#include <memory>
#include <set>

namespace gpurota::sched::testing_world {
namespace {

class World : Promises {
 public:
  explicit World(const Plan& plan) : Promises(plan) {
    start_daemon();
    for (const ScriptLine& line : plan.script) {
      queue_.push({line.at, ++order_, [this, line] { act(line); }});
    }
  }

  Outcome run() {
    while (!queue_.empty() && outcome_.failure.empty()) {
      const Entry entry = queue_.top();
      if (entry.at > plan_.seconds) break;
      queue_.pop();
      pass_time(entry.at);
      entry.run();
      if (++outcome_.events > 40'000'000) fail("more events than such a machine can have");
    }
    if (outcome_.failure.empty()) pass_time(plan_.seconds);
    for (auto& answered : outcome_.answered) std::sort(answered.begin(), answered.end());
    outcome_.trace.assign(trace_.begin(), trace_.end());
    return outcome_;
  }

 private:
  // The daemon.

  void start_daemon() {
    ++epoch_;
    turns_ = std::make_unique<Turns>(plan_.settings);
    for (std::size_t i = 0; i < plan_.gpus.size(); ++i) {
      const std::size_t shift = plan_.renumbers ? static_cast<std::size_t>(epoch_) : 0;
      const std::size_t g = (i + shift) % plan_.gpus.size();
      if (lost_[g] == 0) introduce_gpu(g);
    }
    for (std::size_t lease : live_) turns_->add_lease(plan_.leases[lease].terms);
    told_.assign(plan_.gpus.size(), {});
    wake_ = TimePoint::max();
  }

  void introduce_gpu(std::size_t g) {
    GpuSettings settings = plan_.gpus[g];
    settings.capacity = capacity_[g];
    (void)turns_->set_gpu(settings);
    lowered_at_[g] = std::max(lowered_at_[g], found_at_);
  }

  void restart() {
    note("the daemon is restarted");
    start_daemon();
    turns_->hold_until(at(now_ + 3));
    for (const auto& t : tenants_) {
      t->known = false;
      t->inbox.clear();
      t->gate_seq = 0;
      for (GpuMemory& m : t->gpus) m.to_evict = m.to_restore = Bytes();
      reconnect(t.get());
    }
    count_outsiders();
    for (const std::size_t lease : aside_) {
      take(turns_->set_aside(plan_.leases[lease].terms.id, true, at(now_)));
    }
    feed(Tick{});
  }

  void reconnect(Tenant* t) {
    const long epoch = epoch_;
    after(0.001 + 0.5 * t->uniform(), [this, t, epoch] {
      if (epoch != epoch_ || t->dead || t->known) return;
      // A piece that was being moved when the daemon ended is finished first.
      bool moving = t->stopped || t->moves;
      for (const GpuMemory& m : t->gpus) moving = moving || m.evicting || !m.arriving.is_zero();
      moving ? reconnect(t) : introduce(t);
    });
  }

  // Counts the memory that NVML shows of processes that have not come back to this daemon.
  void count_outsiders() {
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      Bytes held = outsiders_[g];
      for (const auto& t : tenants_) {
        const GpuMemory& m = t->gpus[g];
        if (!t->known) held += m.resident + m.arriving + m.wired + m.beside + m.lingering;
      }
      turns_->set_outsiders(plan_.gpus[g].uuid, held);
    }
  }

  void introduce(Tenant* t) {
    AddTenant event{t->id, plan_of(*t).terms.id, {}, t->open};
    for (std::size_t g = 0; g < t->gpus.size(); ++g) {
      const GpuMemory& m = t->gpus[g];
      event.memory.push_back(
          {plan_.gpus[g].uuid, m.resident + m.out, m.resident, m.wired, m.hosted, m.lingering});
      if (!m.lingering.is_zero()) sample_soon(t, g);
    }
    t->known = true;
    count_outsiders();
    feed(event);
    for (std::size_t g = 0; g < t->gpus.size(); ++g) {
      if (t->gpus[g].beside.is_zero()) continue;
      lowered_at_[g] = now_;  // known again only at the next sample
      feed(Measured{t->id, plan_.gpus[g].uuid, t->gpus[g].beside});
    }
    say_status(t);
    for (const auto& [seq, growth] : t->growing) say_growth(t, seq, growth);
  }

  // The next sample shows whether memory reported as evicted is free, once no move is under way.
  void sample_soon(Tenant* t, std::size_t g) {
    const long epoch = epoch_;
    after(5e-3, [this, t, g, epoch] {
      if (epoch != epoch_ || !t->known || t->dead) return;
      const Holding& said =
          turns_->residency().at(t->id, *turns_->residency().slot_of(plan_.gpus[g].uuid));
      if (said.lingering.is_zero()) return;
      if (!(said.leaving + said.coming).is_zero()) return sample_soon(t, g);
      t->gpus[g].lingering -= said.lingering;
      feed(Measured{t->id, plan_.gpus[g].uuid, t->gpus[g].beside, true});
    });
  }

  void feed(const Event& heard) override {
    Event event = heard;
    if (auto* const out = std::get_if<Evicted>(&event)) {
      Tenant* const t = find(out->tenant);
      out->doubted = t != nullptr && plan_of(*t).doubted;
      if (out->doubted && !out->bytes.is_zero()) sample_soon(t, gpu_index(out->gpu));
    }
    note(sched::to_string(event));
    const auto* grow = std::get_if<Grow>(&event);
    const Residency before = grow != nullptr ? turns_->residency() : Residency();
    const Actions actions = turns_->handle(event, at(now_));
    count_moved(event);
    if (grow != nullptr && grow->hosted) check_answered(*grow, actions);
    if (grow != nullptr) check_judgement(before, *grow, actions);
    take(actions);
    check_ledger();
  }

  void take(const Actions& actions) {
    bool opened = false;
    for (const Action& action : actions) {
      note("  -> " + sched::to_string(action));
      const auto* gate = std::get_if<SetGate>(&action);
      opened = opened || (gate != nullptr && gate->order == GateOrder::kOpen);
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
    check_memory();
    if (opened) check_holders(), check_moved();
    check_aside();
    check_turns();
    arm();
  }

  void arm() {
    const auto next = turns_->next_deadline();
    if (!next || *next >= wake_) return;
    if (*next <= at(now_)) return fail("a deadline that is past already");
    wake_ = *next;
    const long epoch = epoch_;
    queue_.push({to_seconds(*next) + 1e-9, ++order_, [this, epoch, due = *next] {
                   if (epoch != epoch_ || wake_ != due) return;
                   wake_ = TimePoint::max();
                   feed(Tick{});
                 }});
  }

  void order(TenantId id, std::function<void(Tenant*)> run) {
    Tenant* t = find(id);
    if (t == nullptr || t->dead) return;
    const long epoch = epoch_;
    t->ordered_until = std::max(t->ordered_until, now_ + 20e-6 + 200e-6 * t->uniform());
    queue_.push({t->ordered_until, ++order_, [t, epoch, this, run = std::move(run)] {
                   if (epoch != epoch_ || t->dead) return;
                   if (t->stopped) {
                     t->inbox.push_back([run, t] { run(t); });
                   } else {
                     run(t);
                   }
                 }});
  }

  void carry_out(const SetGate& a) {
    if (a.order == GateOrder::kOpen && is_aside(a.tenant))
      fail("a lease that is aside gets a turn");
    order(a.tenant, [this, a](Tenant* t) { on_gate(t, a); });
  }
  void carry_out(const Evict& a) {
    order(a.tenant, [this, a](Tenant* t) {
      if (t->open || t->busy) fail("memory of a running tenant is evicted");
      t->gpus[gpu_index(a.gpu)].to_evict += a.bytes;
      evict(t, gpu_index(a.gpu));
    });
  }
  void carry_out(const Restore& a) {
    if (is_aside(a.tenant)) fail("memory of a lease that is aside is brought back");
    order(a.tenant, [this, a](Tenant* t) {
      t->gpus[gpu_index(a.gpu)].to_restore += a.bytes;
      restore(t, gpu_index(a.gpu));
    });
  }
  void carry_out(const AnswerGrow& a) {
    order(a.tenant, [this, a](Tenant* t) { on_answer(t, a); });
  }
  void carry_out(const ReportTrouble& a) {
    const bool excused = anybody_odd_ || several_capture();
    if (a.trouble == Trouble::kNotYielding && !excused) fail("a lease is said not to yield");
    if (a.trouble == Trouble::kUnreachable && a.stop) end_stopped(a);
  }

  void end_stopped(const ReportTrouble& a) {
    const Tenant* const t = find(a.tenant);
    if (t == nullptr || plan_of(*t).terms.id != a.lease) return fail("nobody's lease is to end");
    if (!t->stopped && t->known) fail("a lease ends although its process answers");
    ++outcome_.ends;
    after(20e-6, [this, lease = t->lease] { end_lease(lease); });
  }

  // Whether several tenants capture: these may wait for each other's memory, so that no capture
  // ends.
  bool several_capture() const {
    return std::count_if(tenants_.begin(), tenants_.end(),
                         [](const auto& t) { return t->captures && !t->dead; }) > 1;
  }

  // The script.

  void act(const ScriptLine& line) {
    switch (line.act) {
      case Act::kStart:
        return start_lease(static_cast<std::size_t>(line.lease));
      case Act::kEnd:
        return end_lease(static_cast<std::size_t>(line.lease));
      case Act::kRestart:
        anybody_odd_ = true;
        return restart();
      case Act::kLose:
        return lose(static_cast<std::size_t>(line.lease));
      case Act::kFind:
        return find_again(static_cast<std::size_t>(line.lease), line.tenant == 1);
      case Act::kCapacity:
        return set_capacity(static_cast<std::size_t>(line.lease), line.bytes);
      case Act::kOutsiders:
        return set_outsiders(static_cast<std::size_t>(line.lease), line.bytes);
      case Act::kAside:
        return put_aside(static_cast<std::size_t>(line.lease));
      case Act::kBack:
        return take_back(static_cast<std::size_t>(line.lease));
      default:
        break;
    }
    for (const auto& t : tenants_) {
      if (t->lease != static_cast<std::size_t>(line.lease) || t->place != line.tenant) continue;
      if (t->dead) continue;
      if (line.act == Act::kBeside) {
        take_beside(t.get(), line.bytes);
        continue;
      }
      anybody_odd_ = true;
      if (line.act == Act::kStop) stop(t.get());
      if (line.act == Act::kContinue) go_on(t.get());
      if (line.act == Act::kKill) kill(t.get());
      if (line.act == Act::kFailMoves) t->fails_until = now_ + 5;
    }
  }

  void lose(std::size_t g) {
    note(plan_.gpus[g].uuid.value + " is lost");
    anybody_odd_ = true;
    lost_[g] = 1;
  }

  void find_again(std::size_t g, bool at_once) {
    note(plan_.gpus[g].uuid.value + " is there again");
    lost_[g] = 0;
    found_at_ = now_;
    if (!at_once || !is_unknown(g)) return;
    introduce_gpu(g);
    feed(Tick{});
  }

  void set_capacity(std::size_t g, Bytes bytes) {
    if (is_unknown(g)) return;
    GpuSettings settings = plan_.gpus[g];
    settings.capacity = bytes;
    if (!turns_->set_gpu(settings)) return;
    note(settings.uuid.value + " has " + gpurota::to_string(bytes) + " now");
    capacity_[g] = bytes;
    lowered_at_[g] = now_;
    feed(Tick{});
  }

  void set_outsiders(std::size_t g, Bytes bytes) {
    note(plan_.gpus[g].uuid.value + " has " + gpurota::to_string(bytes) + " of others now");
    if (bytes > outsiders_[g]) lowered_at_[g] = now_;
    outsiders_[g] = bytes;
    count_outsiders();
    feed(Tick{});
  }

  void take_beside(Tenant* t, Bytes bytes) {
    for (std::size_t g = 0; g < t->gpus.size(); ++g) {
      if (t->gpus[g].wired.is_zero()) continue;
      if (bytes > t->gpus[g].beside) lowered_at_[g] = now_;
      t->gpus[g].beside = bytes;
      if (t->known) feed(Measured{t->id, plan_.gpus[g].uuid, bytes});
    }
    count_outsiders();
  }

  void start_lease(std::size_t lease) {
    const LeasePlan& plan = plan_.leases[lease];
    if (!turns_->check_lease(plan.terms)) return;
    turns_->add_lease(plan.terms);
    live_.insert(lease);
    for (int i = 0; i < plan.tenants; ++i) {
      auto made = std::make_unique<Tenant>();
      Tenant* t = made.get();
      tenants_.push_back(std::move(made));
      t->id = TenantId{++last_id_};
      t->lease = lease;
      t->place = i;
      t->random.seed(plan_.seed * 1000003ull + lease * 101 + static_cast<unsigned>(i));
      t->gpus.resize(plan_.gpus.size());
      introduce(t);
      for (const LeaseTerms::Gpu& gpu : plan.terms.gpus) {
        ask(t, {gpu_index(gpu.uuid), plan.wired, true});
        ask(t, {gpu_index(gpu.uuid), part_of(plan.memory, plan.captures ? 0.25 : 1)});
      }
      if (plan.churns) churn(t);
      if (plan.captures) grow_slowly(t);
    }
  }

  void put_aside(std::size_t lease) {
    const LeaseId id = plan_.leases[lease].terms.id;
    if (!live_.contains(lease) || !turns_->could_be_aside(id)) return;
    if (!aside_.insert(lease).second) return;
    ++outcome_.asides;
    note(to_string(id) + " is put aside");
    take(turns_->set_aside(id, true, at(now_)));
  }

  // Tries again until the lease fits: other leases were admitted as if it never came back.
  void take_back(std::size_t lease) {
    if (!aside_.contains(lease)) return;
    const LeaseId id = plan_.leases[lease].terms.id;
    if (!turns_->could_come_back(id)) return after(5, [this, lease] { take_back(lease); });
    aside_.erase(lease);
    note(to_string(id) + " is taken back");
    take(turns_->set_aside(id, false, at(now_)));
  }

  void end_lease(std::size_t lease) {
    if (live_.erase(lease) == 0) return;
    aside_.erase(lease);
    for (const auto& t : tenants_) {
      if (t->lease != lease || t->gone) continue;
      t->dead = t->gone = true;
      t->busy = t->open = false;
      t->gpus.assign(t->gpus.size(), {});
    }
    count_outsiders();
    take(turns_->remove_lease(plan_.leases[lease].terms.id, at(now_)));
  }

  void stop(Tenant* t) {
    if (t->stopped) return;
    if (t->open) stop_running(t);
    t->stopped = true;
    tell_reachable(t);
  }

  void tell_reachable(Tenant* t) {
    const long epoch = epoch_;
    t->heard = false;
    after(0.05 * t->uniform(), [this, t, epoch] {
      t->heard = true;
      if (epoch == epoch_ && t->known && !t->dead) feed(Reachable{t->id, !t->stopped});
    });
  }

  void go_on(Tenant* t) {
    if (!t->stopped) return;
    t->stopped = false;
    if (t->known) tell_reachable(t);
    const auto inbox = std::move(t->inbox);
    t->inbox.clear();
    for (const auto& run : inbox) run();
    if (t->open && t->wants && !t->busy) start_running(t);
    if (t->known) say_status(t);
  }

  void kill(Tenant* t) {
    if (t->dead) return;
    t->dead = true;
    t->open = t->busy = t->wants = false;
    if (t->known) feed(TenantDied{t->id});
    after(0.1 + 2 * t->uniform(), [this, t] {
      t->gone = true;
      t->gpus.assign(t->gpus.size(), {});
      count_outsiders();
      feed(RemoveTenant{t->id});
    });
  }

  TimePoint wake_ = TimePoint::max();
  std::uint64_t last_id_ = 0;
  bool anybody_odd_ = false;
};

}  // namespace

Outcome simulate(const Plan& plan) { return World(plan).run(); }

}  // namespace gpurota::sched::testing_world
