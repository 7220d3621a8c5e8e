// Checks progress on the simulated machine: no GPU stands idle, no tenant is refused because of
// others, and moved memory is counted. For turns_world_test.cpp only.
#pragma once

#include "sched/turns_movers_test.h"

#include <algorithm>
#include <memory>
#include <set>

namespace gpurota::sched::testing_world {

constexpr double kStill = 0.01;   // seconds without visible progress, while messages are under way
constexpr double kLowering = 20;  // seconds that reaching a smaller capacity may take

class Progress : protected Movers {
 protected:
  explicit Progress(const Plan& plan) : Movers(plan) {
    for (const GpuSettings& gpu : plan.gpus) capacity_.push_back(gpu.capacity);
    lowered_at_.resize(plan.gpus.size(), -1e9);
    outsiders_.resize(plan.gpus.size());
    told_.resize(plan.gpus.size());
    still_since_.resize(plan.leases.size(), -1);
  }

  // movable_of() is the movable memory of a lease on a GPU, resident or evicted, with the memory
  // that the lease has asked for there. fixed_on() is all memory there that cannot be moved.
  Bytes movable_of(std::size_t lease, std::size_t g) const {
    Bytes sum;
    for (const auto& t : tenants_) {
      if (t->lease != lease || t->dead) continue;
      sum += t->gpus[g].resident + t->gpus[g].out;
      for (const auto& [seq, growth] : t->growing) {
        if (growth.gpu == g && !growth.wired && !growth.hosted) sum += growth.bytes;
      }
    }
    return sum;
  }
  Bytes fixed_on(std::size_t g) const {
    Bytes sum = outsiders_[g];
    for (const auto& t : tenants_) {
      sum += t->gpus[g].wired + t->gpus[g].beside;
      for (const auto& [seq, growth] : t->growing) {
        if (growth.gpu == g && growth.wired) sum += growth.bytes;
      }
    }
    return sum;
  }

  // Whether the daemon does not know the GPU, because it was lost when the daemon started.
  bool is_unknown(std::size_t g) const {
    const Residency& memory = turns_->residency();
    const auto slot = memory.slot_of(plan_.gpus[g].uuid);
    return !slot || memory.is_lost(*slot);
  }

  // Whether there may be too little room for the lease's memory on a GPU, or for evicted memory on
  // the host.
  bool may_be_stuck(std::size_t lease) const {
    Bytes out;
    for (const auto& t : tenants_) {
      for (const GpuMemory& m : t->gpus) out += m.out;
    }
    for (std::size_t i : live_) {
      for (const LeaseTerms::Gpu& gpu : plan_.leases[i].terms.gpus) out += gpu.oversize;
    }
    const Bytes pieces(plan_.settings.piece.count() * 2);
    if (out + pieces > plan_.settings.host_budget) return true;
    for (const LeaseTerms::Gpu& gpu : plan_.leases[lease].terms.gpus) {
      const std::size_t g = gpu_index(gpu.uuid);
      if (lost_[g] != 0 || is_unknown(g)) return true;
      if (now_ < lowered_at_[g] + kLowering) return true;
      if (movable_of(lease, g) + fixed_on(g) > capacity_[g]) return true;
    }
    return false;
  }

  // The GPUs where somebody runs, memory moves, or work has to end first.
  std::vector<char> lively_gpus() const {
    std::vector<char> lively(plan_.gpus.size());
    for (const auto& t : tenants_) {
      for (std::size_t g = 0; !t->dead && g < lively.size(); ++g) {
        const GpuMemory& m = t->gpus[g];
        const bool here = !m.wired.is_zero() && (t->open || t->busy);
        const bool moves = m.evicting || !(m.arriving + m.to_evict + m.to_restore).is_zero();
        lively[g] = lively[g] || here || moves;
      }
    }
    return lively;
  }
  void add_holders(std::vector<char>* lively) const {
    for (std::size_t lease : live_) {
      const auto view = turns_->explain(plan_.leases[lease].terms.id, at(now_));
      if (!view || (view->phase != Phase::kHolding && view->phase != Phase::kLeaving)) continue;
      for (const LeaseTerms::Gpu& gpu : plan_.leases[lease].terms.gpus) {
        (*lively)[gpu_index(gpu.uuid)] = 1;
      }
    }
  }
  bool is_lively(std::size_t lease, const std::vector<char>& gpus) const {
    const auto& all = plan_.leases[lease].terms.gpus;
    return std::any_of(all.begin(), all.end(),
                       [&](const LeaseTerms::Gpu& gpu) { return gpus[gpu_index(gpu.uuid)] != 0; });
  }

  // Checks that nobody waits for an idle GPU. A GPU may be kept for a lease that waits for another
  // of its GPUs.
  void watch_progress(const std::vector<char>& waits, double to) {
    std::vector<char> lively = lively_gpus();
    const auto stuck = [&](std::size_t i) { return waits[i] && !is_lively(i, lively); };
    bool any = false;
    for (std::size_t i = 0; i < waits.size(); ++i) any = any || stuck(i);
    if (any) add_holders(&lively);
    for (bool more = any; more;) {
      more = false;
      for (std::size_t i = 0; i < waits.size(); ++i) {
        if (!waits[i] || !is_lively(i, lively)) continue;
        for (const LeaseTerms::Gpu& gpu : plan_.leases[i].terms.gpus) {
          more = more || lively[gpu_index(gpu.uuid)] == 0;
          lively[gpu_index(gpu.uuid)] = 1;
        }
      }
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
      double& since = still_since_[i];
      if (!any || !stuck(i) || may_be_stuck(i))
        since = -1;
      else if (since < 0)
        since = now_;
      if (since >= 0 && to > since + kStill) {
        fail(to_string(plan_.leases[i].terms.id) + " waits, and nothing goes on");
      }
    }
  }

  // Checks that a request for memory is granted if there is room, even if other leases have none,
  // and that a request that would take the room of another lease is refused.
  void check_judgement(const Residency& before, const Grow& grow, const Actions& actions) {
    for (const Action& action : actions) {
      const auto* answer = std::get_if<AnswerGrow>(&action);
      const bool this_one =
          answer != nullptr && answer->tenant == grow.tenant && answer->seq == grow.seq;
      if (!this_one || grow.hosted) continue;
      const GpuSlot slot = *before.slot_of(grow.gpu);
      const std::size_t g = gpu_index(grow.gpu);
      const LeaseId lease = plan_of(*find(grow.tenant)).terms.id;
      const Bytes needed = before.of_lease(lease, slot).movable + before.wired(slot) + grow.bytes;
      const bool refused = answer->answer == GrowAnswer::kRefusedCapacity;
      if (refused && needed <= capacity_[g] && (!grow.wired || !takes_room(before, grow, lease))) {
        fail("a growth that has room is refused because of others");
      }
      const bool all_fits = before.wired(slot) + sum_of(before, slot) + grow.bytes <= capacity_[g];
      if (answer->answer == GrowAnswer::kRefusedHost && all_fits && !is_aside(grow.tenant)) {
        fail("host memory is said to be full, and nothing would have to go there");
      }
    }
  }

  Bytes sum_of(const Residency& memory, GpuSlot slot) const {
    Bytes sum;
    for (std::size_t i : live_) sum += memory.of_lease(plan_.leases[i].terms.id, slot).movable;
    return sum;
  }

  // Whether another lease fits on the GPU now, but would not fit beside the growth. Also checks
  // this for the time when the GPU has only the unmovable memory that leases have requested: all
  // other unmovable memory may become free.
  bool takes_room(const Residency& before, const Grow& grow, LeaseId lease) const {
    const GpuSlot slot = *before.slot_of(grow.gpu);
    const Bytes capacity = before.capacity(slot);
    Bytes asked;
    for (std::size_t i : live_) {
      const Holding h = before.of_lease(plan_.leases[i].terms.id, slot);
      asked += h.wired + h.wired_unbacked;
    }
    for (std::size_t i : live_) {
      const Bytes other = before.of_lease(plan_.leases[i].terms.id, slot).movable;
      if (plan_.leases[i].terms.id == lease || other.is_zero()) continue;
      for (const Bytes fixed : {asked, before.wired(slot)}) {
        if (other + fixed <= capacity && other + fixed + grow.bytes > capacity) return true;
      }
    }
    return false;
  }

  struct Told {
    Bytes out, in;           // moved, as tenants have told this daemon
    Bytes listed;            // of it, in switches
    std::uint64_t seen = 0;  // switches
  };

  void count_moved(const Event& event) {
    if (const auto* e = std::get_if<Evicted>(&event)) told_[gpu_index(e->gpu)].out += e->bytes;
    if (const auto* r = std::get_if<Restored>(&event)) told_[gpu_index(r->gpu)].in += r->bytes;
  }

  // Checks that all moved memory is in the sums, and in one switch.
  void check_moved() {
    const std::vector<GpuView> views = turns_->view();
    for (const GpuView& view : views) {
      Told& told = told_[gpu_index(view.settings.uuid)];
      for (; told.seen < view.counts.handovers; ++told.seen) {
        const std::size_t back = view.counts.handovers - told.seen;
        if (back > view.switches.size()) return fail("a switch is not listed");
        const Moved& moved = view.switches[view.switches.size() - back].moved;
        told.listed += moved.in + moved.out;
      }
      const Bytes rest = view.since_switch.in + view.since_switch.out;
      const bool same = view.counts.evicted == told.out && view.counts.restored == told.in;
      if (!same || told.listed + rest != told.out + told.in) fail("what moved is not what is told");
    }
  }

  bool is_aside(TenantId id) {
    const Tenant* t = find(id);
    return t != nullptr && aside_.contains(t->lease);
  }

  std::unique_ptr<Turns> turns_;
  std::set<std::size_t> live_;
  std::set<std::size_t> aside_;
  std::vector<Bytes> capacity_;
  std::vector<Bytes> outsiders_;
  std::vector<double> lowered_at_;
  std::vector<double> still_since_;
  std::vector<Told> told_;
};

}  // namespace gpurota::sched::testing_world
