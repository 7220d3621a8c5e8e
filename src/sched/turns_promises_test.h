// Checks the promises that must hold on the simulated machine at any time, whatever happens. For
// turns_world_test.cpp only.
#pragma once

#include "sched/turns_progress_test.h"

#include <algorithm>

namespace gpurota::sched::testing_world {

constexpr double kOut = 20;  // seconds that a lease put aside may take to be evicted

class Promises : protected Progress {
 protected:
  explicit Promises(const Plan& plan) : Progress(plan) {
    outcome_.run.resize(plan.leases.size());
    outcome_.waited.resize(plan.leases.size());
    outcome_.answered.resize(plan.leases.size());
    waits_since_.resize(plan.leases.size(), -1);
    staying_.resize(plan.leases.size());
    held_up_.resize(plan.leases.size());
    most_used_.resize(plan.gpus.size());
  }

  void check_memory() override {
    Bytes out;
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      Bytes used;
      for (const auto& t : tenants_) {
        const GpuMemory& m = t->gpus[g];
        used += m.resident + m.arriving + m.wired + m.beside + m.lingering;
        if (!t->dead) out += m.out;
      }
      check_used(g, used + outsiders_[g]);
    }
    const Bytes reserved = check_hosted();
    if (out + reserved > plan_.settings.host_budget) {
      fail(gpurota::to_string(out) + " are out, more than host memory may take beside " +
           gpurota::to_string(reserved) + " for oversize leases");
    }
  }

  // If others have grown without asking, leases that were there may keep the GPU above its
  // capacity, but must not add memory.
  void check_used(std::size_t g, Bytes used) {
    const bool settling = is_unknown(g) || now_ < lowered_at_[g] + kLowering;
    if (!settling && used > std::max(capacity_[g], most_used_[g])) {
      fail("GPU " + std::to_string(g) + " holds " + gpurota::to_string(used) + " of " +
           gpurota::to_string(capacity_[g]));
    }
    most_used_[g] = settling ? used : std::min(most_used_[g], used);
  }

  // The host memory that is reserved for oversize leases; checks that no lease has more there than
  // its part.
  Bytes check_hosted() {
    Bytes reserved;
    for (const std::size_t lease : live_) {
      for (const LeaseTerms::Gpu& gpu : plan_.leases[lease].terms.gpus) {
        Bytes hosted;
        for (const auto& t : tenants_) {
          if (t->lease == lease && !t->dead) hosted += t->gpus[gpu_index(gpu.uuid)].hosted;
        }
        if (hosted > gpu.oversize) fail("a lease has more in host memory than is reserved for it");
        reserved += gpu.oversize;
      }
    }
    return reserved;
  }

  void check_answered(const Grow& grow, const Actions& actions) {
    const bool answered = std::any_of(actions.begin(), actions.end(), [&](const Action& action) {
      const auto* answer = std::get_if<AnswerGrow>(&action);
      return answer != nullptr && answer->tenant == grow.tenant && answer->seq == grow.seq;
    });
    if (!answered && !turns_->on_hold(at(now_))) fail("host memory has to be waited for");
  }

  // Checks that a tenant with no message under way has exactly the memory that Turns counts for it.
  void check_ledger() {
    const Residency& memory = turns_->residency();
    for (const auto& t : tenants_) {
      const bool quiet = t->known && !t->dead && !t->stopped && t->growing.empty() &&
                         t->said_until < now_ && t->ordered_until < now_;
      if (!quiet) continue;
      for (std::size_t g = 0; g < t->gpus.size(); ++g) {
        const GpuMemory& m = t->gpus[g];
        if (m.wired.is_zero() || m.evicting || !(m.to_evict + m.to_restore).is_zero()) continue;
        if (t->moves) continue;
        const Holding& h = memory.at(t->id, *memory.slot_of(plan_.gpus[g].uuid));
        const bool same = h.resident == m.resident && h.out() == m.out && h.wired == m.wired &&
                          h.hosted == m.hosted;
        if (!same) fail("what T" + std::to_string(t->id.value) + " has is not known");
      }
    }
  }

  void check_holders() {
    for (const GpuView& gpu : turns_->view()) {
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

  void check_turns() {
    for (const std::size_t lease : live_) {
      const LeaseId id = plan_.leases[lease].terms.id;
      const auto view = turns_->explain(id, at(now_));
      const auto turn = turns_->turn_of(id);
      if (!view || !turn) continue;
      const bool waits = view->wait != Wait::kNothing && view->wait != Wait::kRestart &&
                         view->wait != Wait::kAside;
      const bool holds = view->phase == Phase::kHolding || view->phase == Phase::kEntering;
      Bytes out;
      for (const LeaseView::Gpu& gpu : view->gpus) out += gpu.out;
      const bool same = turn->waits == waits && turn->holds == holds && turn->out == out &&
                        turn->takes_turns == view->takes_turns;
      if (!same) fail("the short view of " + to_string(id) + " says something else");
    }
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

  // Checks that the memory of a lease that is put aside is moved out, however much room there is.
  void watch_aside(double dt, bool odd) {
    for (std::size_t lease = 0; lease < staying_.size(); ++lease) {
      bool stays = false;
      for (const auto& t : tenants_) {
        if (t->lease != lease || t->dead || !aside_.contains(lease)) continue;
        for (std::size_t g = 0; g < t->gpus.size(); ++g) {
          const GpuMemory& m = t->gpus[g];
          if (lost_[g] == 0 && !is_unknown(g))
            stays = stays || !(m.resident + m.arriving).is_zero();
        }
      }
      staying_[lease] = stays && !odd ? staying_[lease] + dt : 0;
      if (staying_[lease] < kOut) continue;
      fail(to_string(plan_.leases[lease].terms.id) + " is aside and its memory is not out");
    }
  }

  // Checks how long a lease waits for memory of processes that do not answer. Their leases end one
  // after the other.
  void watch_held_up(double dt) {
    const double bound = std::chrono::duration<double>(plan_.settings.stopped_deadline).count();
    if (bound == 0) return;
    for (std::size_t lease = 0; lease < held_up_.size(); ++lease) {
      const auto view = live_.contains(lease)
                            ? turns_->explain(plan_.leases[lease].terms.id, at(now_))
                            : std::nullopt;
      const bool is = view && view->wait == Wait::kHeldByStopped && !turns_->on_hold(at(now_));
      held_up_[lease] = is ? held_up_[lease] + dt : 0;
      if (held_up_[lease] <= bound * static_cast<double>(held_up_.size()) + 1) continue;
      fail(to_string(plan_.leases[lease].terms.id) + " is held up by a stopped process");
    }
  }

  void pass_time(double to) {
    const double dt = to - now_;
    bool works = false, moves = false, wanted = false, odd = now_ < found_at_ + 5;
    // A move that fails on a lost GPU is retried repeatedly, until a daemon is started that does
    // not find the GPU.
    for (std::size_t g = 0; g < lost_.size(); ++g) odd = odd || (lost_[g] != 0 && !is_unknown(g));
    std::vector<char> runs(plan_.leases.size()), waits(plan_.leases.size());
    for (const auto& t : tenants_) {
      odd = odd || (!t->dead && (t->stopped || !t->known || !t->heard)) || (t->dead && !t->gone);
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
      waits[i] = waits[i] && !odd && !turns_->on_hold(at(now_));
    }
    watch_progress(waits, to);
    watch_aside(dt, odd);
    watch_held_up(dt);
    if (!works && moves) outcome_.moving += dt;
    if (!works && !moves && wanted) outcome_.idle += dt;
    now_ = to;
  }

  void watch_wait(std::size_t lease, bool waits, double to) {
    double& since = waits_since_[lease];
    if (!waits || may_be_stuck(lease))
      since = -1;
    else if (since < 0)
      since = now_;
    if (since < 0) return;
    outcome_.waited[lease] = std::max(outcome_.waited[lease], to - since);
    if (to - since > longest_wait(plan_)) {
      fail(to_string(plan_.leases[lease].terms.id) + " has waited for " +
           std::to_string(to - since) + " s");
    }
  }

  std::vector<Bytes> most_used_;  // while a GPU has more than its capacity
  double found_at_ = -1e9;        // when a GPU was found again
  std::vector<double> waits_since_;
  std::vector<double> staying_;  // seconds that memory of a lease has stayed although it is aside
  std::vector<double> held_up_;  // seconds that a lease has waited for memory of a stopped process
};

}  // namespace gpurota::sched::testing_world
