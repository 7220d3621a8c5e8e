// The tenants of the simulated machine: they submit, pause and drain. Messages take time and arrive
// in order. For turns_world_test.cpp only.
#pragma once

#include "sched/turns_timeline_test.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched::testing_world {

class Tenants : protected Timeline {
 protected:
  using Timeline::Timeline;
  virtual ~Tenants() = default;

  virtual void feed(const Event& event) = 0;

  void say(Tenant* t, const Event& event) {
    const long epoch = epoch_;
    t->said_until = std::max(t->said_until, now_ + 20e-6 + 200e-6 * t->uniform());
    queue_.push({t->said_until, ++order_, [this, t, epoch, event] {
                   if (epoch == epoch_ && t->known && !t->dead) feed(event);
                 }});
  }

  void say_status(Tenant* t) {
    const std::uint32_t waiting = t->wants && !t->open ? 1 : 0;
    say(t, TenantStatus{t->id, t->gate_seq, t->busy, waiting, t->busy ? 0 : waiting});
  }

  void begin_work(Tenant* t) {
    t->wants = true;
    t->work_left = plan_of(*t).work;
    if (t->open) {
      start_running(t);
    }
    say_status(t);
  }

  void start_running(Tenant* t) {
    t->busy = true;
    t->busy_since = now_;
    const long shift = ++t->shift;
    if (plan_of(*t).work <= 0) return;
    after(t->work_left, [this, t, shift] {
      if (shift != t->shift || t->dead || t->stopped) return;
      pause(t);
    });
  }

  void pause(Tenant* t) {
    stop_running(t);
    if (plan_of(*t).period > 0) return answer(t);
    t->wants = false;
    say_status(t);
    after(plan_of(*t).pause * (0.5 + t->uniform()), [this, t] {
      if (!t->dead && !t->wants) begin_work(t);
    });
  }

  // Begins the next request, which is there already or comes later.
  void answer(Tenant* t) {
    const double period = plan_of(*t).period;
    if (t->asked_at >= 0) outcome_.answered[t->lease].push_back(now_ - t->asked_at);
    t->asked_at = t->asked_at < 0 ? now_ + period * t->uniform() : t->asked_at + period;
    if (t->asked_at <= now_) return begin_work(t);
    t->wants = false;
    say_status(t);
    after(t->asked_at - now_, [this, t] {
      if (!t->dead && !t->wants) begin_work(t);
    });
  }

  void stop_running(Tenant* t) {
    if (!t->busy) return;
    t->work_left = std::max(t->work_left - (now_ - t->busy_since), 1e-4);
    t->busy = false;
    ++t->shift;
  }

  void on_gate(Tenant* t, const SetGate& a) {
    t->gate_seq = a.seq;
    if (a.order == GateOrder::kOpen) {
      for (const GpuMemory& m : t->gpus) {
        if (!m.out.is_zero()) fail("a gate is opened before all memory is back");
      }
      t->open = true;
      t->stuck = false;
      if (t->owes > 0) pay(t);  // launches for which a sibling waits pass freely now
      if (t->wants && !t->busy) start_running(t);
    } else if (a.order == GateOrder::kClose) {
      t->open = false;
      if (t->busy) begin_draining(t);
    } else {
      pass_one(t);
    }
    say_status(t);
  }

  // One tenant's kernel may wait for launches of its sibling that now stand at the gate.
  void begin_draining(Tenant* t) {
    Tenant* sibling = nullptr;
    for (const auto& other : tenants_) {
      if (other->lease == t->lease && other->place == 1 && !other->dead) sibling = other.get();
    }
    const bool can_stick = plan_of(*t).collective && t->place == 0 && sibling != nullptr;
    if (can_stick && !sibling->stopped && t->uniform() < 0.5) {
      t->stuck = true;
      sibling->owes = 1 + static_cast<int>(t->uniform() * 20);
      ++t->shift;
      return;
    }
    if (plan_of(*t).captures && t->uniform() < 0.5) return capture(t);
    drain_in(t, plan_of(*t).kernel * t->uniform());
  }

  // The tenant records a graph, and wants memory for it. None of its work ends before the request
  // for memory is answered.
  void capture(Tenant* t) {
    ++t->shift;
    t->captures = true;
    after(1e-3 * t->uniform(), [this, t] {
      if (t->dead || t->stopped) return end_capture(t);
      if (t->growing.empty()) ask_for_more(t, 1);
      if (t->growing.empty()) end_capture(t);
    });
  }

  // Asks for at most `most` of the memory that the tenant may have and does not have yet.
  virtual void ask_for_more(Tenant* t, double most) = 0;

  void end_capture(Tenant* t) {
    if (!std::exchange(t->captures, false) || t->dead) return;
    if (t->open && t->wants) return start_running(t);
    drain_in(t, 1e-4);
  }

  void drain_in(Tenant* t, double seconds) {
    const long shift = ++t->shift;
    after(seconds, [this, t, shift] {
      if (shift != t->shift || t->dead) return;
      stop_running(t);
      if (!t->stopped) say_status(t);
    });
  }

  void pass_one(Tenant* t) {
    if (t->busy) return;  // the new work ends before the work that has to drain
    t->busy = true;
    t->busy_since = now_;
    if (t->owes > 0 && --t->owes == 0) pay(t);
    drain_in(t, plan_of(*t).collective ? 1e-4 : plan_of(*t).kernel * t->uniform());
  }

  void pay(Tenant* t) {
    t->owes = 0;
    for (const auto& other : tenants_) {
      if (other->lease != t->lease || !other->stuck) continue;
      other->stuck = false;
      drain_in(other.get(), 1e-4);
    }
  }
};

}  // namespace gpurota::sched::testing_world
