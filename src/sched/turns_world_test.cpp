#include "sched/turns_tenants_test.h"

#include <algorithm>
#include <memory>
#include <set>

namespace gpurota::sched::testing_world {
namespace {

constexpr double kLowering = 20;  // seconds that a smaller capacity may take to be reached
constexpr double kOut = 20;       // and that what is put aside may take to be out

class World : Tenants {
 public:
  explicit World(const Plan& plan) : Tenants(plan) {
    outcome_.run.resize(plan.leases.size());
    outcome_.waited.resize(plan.leases.size());
    waits_since_.resize(plan.leases.size(), -1);
    staying_.resize(plan.leases.size());
    for (const GpuSettings& gpu : plan.gpus) capacity_.push_back(gpu.capacity);
    lowered_at_.resize(plan.gpus.size(), -1e9);
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
    outcome_.trace.assign(trace_.begin(), trace_.end());
    return outcome_;
  }

 private:
  // The daemon.

  void start_daemon() {
    ++epoch_;
    turns_ = std::make_unique<Turns>(plan_.settings);
    for (std::size_t i = 0; i < plan_.gpus.size(); ++i) {
      GpuSettings settings = plan_.gpus[i];
      settings.capacity = capacity_[i];
      (void)turns_->set_gpu(settings);
    }
    for (std::size_t lease : live_) turns_->restore_lease(plan_.leases[lease].terms);
    wake_ = TimePoint::max();
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
      // A piece that was on its way when the daemon went is finished first.
      bool moving = t->stopped;
      for (const GpuMemory& m : t->gpus) moving = moving || m.evicting || !m.arriving.is_zero();
      moving ? reconnect(t) : introduce(t);
    });
  }

  // What NVML shows of processes that have not come back to this daemon.
  void count_outsiders() {
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      Bytes held;
      for (const auto& t : tenants_) {
        const GpuMemory& m = t->gpus[g];
        if (!t->known) held += m.resident + m.arriving + m.wired;
      }
      turns_->set_outsiders(plan_.gpus[g].uuid, held);
    }
  }

  void introduce(Tenant* t) {
    AddTenant event{t->id, plan_of(*t).terms.id, {}, t->open};
    for (std::size_t g = 0; g < t->gpus.size(); ++g) {
      const GpuMemory& m = t->gpus[g];
      event.memory.push_back({plan_.gpus[g].uuid, m.resident + m.out, m.resident, m.wired});
    }
    t->known = true;
    count_outsiders();
    feed(event);
    say_status(t);
    for (const auto& [seq, g] : t->growing) {
      say(t, Grow{t->id, plan_.gpus[g.gpu].uuid, seq, g.bytes, g.wired});
    }
  }

  void feed(const Event& event) override {
    note(sched::to_string(event));
    take(turns_->handle(event, at(now_)));
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
    if (opened) check_holders();
    check_aside();
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
    order(a.tenant, [this, a](Tenant* t) {
      const auto found = t->growing.find(a.seq);
      if (found == t->growing.end()) return fail("a growth is answered that nobody asked for");
      const Growth growth = found->second;
      t->growing.erase(found);
      GpuMemory& m = t->gpus[growth.gpu];
      if (a.answer == GrowAnswer::kGranted) (growth.wired ? m.wired : m.resident) += growth.bytes;
      check_memory();
      if (!t->wants && t->growing.empty()) begin_work(t);
    });
  }
  void carry_out(const ReportTrouble& a) {
    if (a.trouble == Trouble::kNotYielding && !anybody_odd_) fail("a lease is said not to yield");
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
      case Act::kCapacity:
        return set_capacity(static_cast<std::size_t>(line.lease), line.bytes);
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
      anybody_odd_ = true;
      if (line.act == Act::kStop) stop(t.get());
      if (line.act == Act::kContinue) go_on(t.get());
      if (line.act == Act::kKill) kill(t.get());
      if (line.act == Act::kFailMoves) t->fails_until = now_ + 5;
    }
  }

  void set_capacity(std::size_t g, Bytes bytes) {
    GpuSettings settings = plan_.gpus[g];
    settings.capacity = bytes;
    if (!turns_->set_gpu(settings)) return;
    note(settings.uuid.value + " has " + gpurota::to_string(bytes) + " now");
    capacity_[g] = bytes;
    lowered_at_[g] = now_;
    feed(Tick{});
  }

  void start_lease(std::size_t lease) {
    const LeasePlan& plan = plan_.leases[lease];
    if (!turns_->add_lease(plan.terms)) return;
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
        ask(t, gpu_index(gpu.uuid), plan.wired, true);
        ask(t, gpu_index(gpu.uuid), plan.memory, false);
      }
      if (plan.churns) churn(t);
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

  // What came meanwhile was admitted as if it never came back.
  void take_back(std::size_t lease) {
    if (!aside_.contains(lease)) return;
    const LeaseId id = plan_.leases[lease].terms.id;
    const Residency& memory = turns_->residency();
    for (const LeaseTerms::Gpu& gpu : plan_.leases[lease].terms.gpus) {
      const GpuSlot slot = *memory.slot_of(gpu.uuid);
      if (memory.of_lease(id, slot).movable + memory.wired(slot) <= memory.capacity(slot)) continue;
      return after(5, [this, lease] { take_back(lease); });
    }
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
    after(0.05 * t->uniform(), [this, t, epoch] {
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

  // What must hold.

  void check_memory() override {
    Bytes out;
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      Bytes used;
      for (const auto& t : tenants_) {
        const GpuMemory& m = t->gpus[g];
        used += m.resident + m.arriving + m.wired;
        if (!t->dead) out += m.out;
      }
      const bool settling = now_ < lowered_at_[g] + kLowering;
      if (used > capacity_[g] && !settling) {
        fail("GPU " + std::to_string(g) + " holds " + gpurota::to_string(used) + " of " +
             gpurota::to_string(capacity_[g]));
      }
    }
    if (out > plan_.settings.host_budget) {
      fail(gpurota::to_string(out) + " are out, more than host memory may take");
    }
  }

  void check_holders() {
    for (const GpuView& gpu : turns_->view(at(now_))) {
      if (!gpu.takes_turns) continue;
      int holders = 0;
      for (std::size_t lease : live_) {
        const auto view = turns_->explain(plan_.leases[lease].terms.id, at(now_));
        const bool has =
            view && (view->phase == Phase::kHolding || view->phase == Phase::kEntering);
        if (!has) continue;
        for (const LeaseView::Gpu& g : view->gpus) {
          const bool there = !(g.resident + g.out + g.wired).is_zero();
          if (g.uuid == gpu.settings.uuid && there) ++holders;
        }
      }
      if (holders > 1) fail("two leases hold " + gpu.settings.uuid.value);
    }
  }

  bool is_aside(TenantId id) {
    const Tenant* t = find(id);
    return t != nullptr && aside_.contains(t->lease);
  }

  void check_aside() {
    for (const std::size_t lease : aside_) {
      const auto view = turns_->explain(plan_.leases[lease].terms.id, at(now_));
      const bool has = view && (view->phase == Phase::kHolding || view->phase == Phase::kEntering);
      const bool on_hold = view && view->wait == Wait::kRestart;  // nothing is decided yet
      if (has && !on_hold)
        fail(to_string(plan_.leases[lease].terms.id) + " is aside and has a turn");
    }
  }

  // What is aside leaves, however much room there is.
  void watch_aside(double dt, bool odd) {
    for (std::size_t lease = 0; lease < staying_.size(); ++lease) {
      bool stays = false;
      for (const auto& t : tenants_) {
        if (t->lease != lease || t->dead || !aside_.contains(lease)) continue;
        for (const GpuMemory& m : t->gpus) stays = stays || !(m.resident + m.arriving).is_zero();
      }
      staying_[lease] = stays && !odd ? staying_[lease] + dt : 0;
      if (staying_[lease] < kOut) continue;
      fail(to_string(plan_.leases[lease].terms.id) + " is aside and its memory is not out");
    }
  }

  void pass_time(double to) {
    const double dt = to - now_;
    bool works = false, moves = false, wanted = false, odd = false;
    std::vector<char> runs(plan_.leases.size()), waits(plan_.leases.size());
    for (const auto& t : tenants_) {
      odd = odd || (!t->dead && (t->stopped || !t->known)) || (t->dead && !t->gone);
      odd = odd || t->fails_until > now_ - 5;
      if (t->dead) continue;
      const bool waiting = t->wants && !t->open && !t->busy;
      runs[t->lease] = runs[t->lease] || t->busy;
      if (aside_.contains(t->lease)) continue;
      waits[t->lease] = waits[t->lease] || waiting || !t->growing.empty();
      const GpuMemory& m = t->gpus[0];
      if (m.wired.is_zero()) continue;
      works = works || t->busy;
      moves = moves || m.evicting || !m.arriving.is_zero();
      wanted = wanted || waiting;
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i]) outcome_.run[i] += dt;
      watch_wait(i, waits[i] && !runs[i] && !odd, to);
    }
    watch_aside(dt, odd);
    if (!works && moves) outcome_.moving += dt;
    if (!works && !moves && wanted) outcome_.idle += dt;
    now_ = to;
  }

  void watch_wait(std::size_t lease, bool waits, double to) {
    double& since = waits_since_[lease];
    if (!waits) since = -1;
    if (waits && since < 0) since = now_;
    if (since < 0) return;
    outcome_.waited[lease] = std::max(outcome_.waited[lease], to - since);
    if (to - since > longest_wait(plan_)) {
      fail(to_string(plan_.leases[lease].terms.id) + " has waited for " +
           std::to_string(to - since) + " s");
    }
  }

  std::unique_ptr<Turns> turns_;
  std::set<std::size_t> live_;
  std::vector<Bytes> capacity_;
  std::vector<double> lowered_at_;
  std::vector<double> waits_since_;
  std::set<std::size_t> aside_;
  std::vector<double>
      staying_;  // seconds that something of a lease has been there although it is aside
  TimePoint wake_ = TimePoint::max();
  std::uint64_t last_id_ = 0;
  bool anybody_odd_ = false;
};

}  // namespace

Outcome simulate(const Plan& plan) { return World(plan).run(); }

}  // namespace gpurota::sched::testing_world
