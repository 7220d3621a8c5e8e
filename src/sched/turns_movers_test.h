// Memory of the simulated machine's tenants, which allocate, free, and move memory as ordered, a
// piece at a time. For turns_world_test.cpp only.
#pragma once

#include "sched/turns_block_movers_test.h"

#include <algorithm>

namespace gpurota::sched::testing_world {

class Movers : protected BlockMovers {
 protected:
  using BlockMovers::BlockMovers;

  void evict(Tenant* t, std::size_t g) {
    if (has_blocks(plan_of(*t))) return move_blocks(t);
    GpuMemory& m = t->gpus[g];
    if (m.evicting || m.to_evict.is_zero()) return;
    const Bytes piece = std::min({plan_.settings.piece, m.to_evict, m.resident});
    if (piece.is_zero() || move_fails(*t, g)) {
      say(t, Evicted{t->id, plan_.gpus[g].uuid, {}, m.to_evict, !piece.is_zero()});
      m.to_evict = Bytes();
      return;
    }
    m.evicting = true;
    after(static_cast<double>(piece.count()) / plan_.bytes_per_second, [this, t, g, piece] {
      finish(t, [this, t, g, piece] {
        GpuMemory& memory = t->gpus[g];
        memory.evicting = false;
        memory.resident -= piece;
        memory.out += piece;
        if (plan_of(*t).doubted) memory.lingering += piece;
        memory.to_evict -= piece;
        say(t, Evicted{t->id, plan_.gpus[g].uuid, piece, {}, false});
        check_memory();
        evict(t, g);
      });
    });
  }

  void restore(Tenant* t, std::size_t g) {
    if (has_blocks(plan_of(*t))) return move_blocks(t);
    GpuMemory& m = t->gpus[g];
    if (!m.arriving.is_zero() || m.to_restore.is_zero()) return;
    const Bytes piece = std::min(plan_.settings.piece, m.out);
    if (piece.is_zero() || move_fails(*t, g)) {
      say(t, Restored{t->id, plan_.gpus[g].uuid, {}, m.to_restore, !piece.is_zero()});
      m.to_restore = Bytes();
      return;
    }
    if (m.to_restore < piece) {
      say(t, Restored{t->id, plan_.gpus[g].uuid, {}, m.to_restore, false});
      m.to_restore = Bytes();
      return;
    }
    m.arriving = piece;
    check_memory();
    after(static_cast<double>(piece.count()) / plan_.bytes_per_second, [this, t, g, piece] {
      finish(t, [this, t, g, piece] {
        GpuMemory& memory = t->gpus[g];
        memory.arriving = Bytes();
        memory.resident += piece;
        memory.out -= piece;
        memory.to_restore -= piece;
        say(t, Restored{t->id, plan_.gpus[g].uuid, piece, {}, false});
        restore(t, g);
      });
    });
  }

  void churn(Tenant* t) {
    after(1 + 20 * t->uniform(), [this, t] {
      if (t->dead) return;
      const std::size_t g = t->random() % t->gpus.size();
      GpuMemory& m = t->gpus[g];
      const bool here = !plan_of(*t).memory.is_zero() && !(m.wired).is_zero();
      const bool in_blocks = has_blocks(plan_of(*t));
      const bool frees = in_blocks && t->uniform() < 0.4;
      if (frees && t->known && !t->stopped && here) {
        free_blocks(t, g);
      } else if (t->open && t->known && !t->stopped && here && t->growing.empty()) {
        if (!m.hosted.is_zero() && t->uniform() < 0.3) {
          const Bytes freed = part_of(m.hosted, t->uniform());
          m.hosted -= freed;
          say(t, Shrink{t->id, plan_.gpus[g].uuid, {}, {}, {}, freed});
        } else if (!in_blocks && t->uniform() < 0.5 && m.resident > mib(64)) {
          const Bytes freed = part_of(m.resident, t->uniform());
          m.resident -= freed;
          say(t, Shrink{t->id, plan_.gpus[g].uuid, freed, {}, {}});
        } else if (plan_of(*t).memory > m.resident + m.hosted) {
          ask(t, {g, plan_of(*t).memory - m.resident - m.hosted});
        }
      }
      churn(t);
    });
  }

  void ask_for_more(Tenant* t, double most) override {
    const std::size_t g = t->random() % t->gpus.size();
    const GpuMemory& m = t->gpus[g];
    const Bytes more = plan_of(*t).memory - m.resident - m.out - m.hosted;
    if (t->known && !m.wired.is_zero() && !more.is_zero())
      ask(t, {g, part_of(more, most * t->uniform())});
  }

  void grow_slowly(Tenant* t) {
    after(0.01 + 5 * t->uniform(), [this, t] {
      if (t->dead) return;
      if (t->open && !t->stopped && t->growing.empty()) ask_for_more(t, 0.2);
      grow_slowly(t);
    });
  }

  static Bytes part_of(Bytes bytes, double part) {
    return Bytes(static_cast<std::uint64_t>(static_cast<double>(bytes.count()) * part));
  }

  void ask(Tenant* t, const Growth& growth) {
    t->growing[++t->grow_seq] = growth;
    if (t->known) say_growth(t, t->grow_seq, growth);
  }
  void say_growth(Tenant* t, std::uint32_t seq, const Growth& g) {
    say(t, Grow{t->id, plan_.gpus[g.gpu].uuid, seq, g.bytes, g.wired, g.hosted});
  }

  void on_answer(Tenant* t, const AnswerGrow& a) {
    const auto found = t->growing.find(a.seq);
    if (found == t->growing.end()) return fail("a growth is answered that nobody asked for");
    const Growth growth = found->second;
    t->growing.erase(found);
    GpuMemory& m = t->gpus[growth.gpu];
    if (a.answer == GrowAnswer::kGranted) {
      (growth.hosted ? m.hosted : growth.wired ? m.wired : m.resident) += growth.bytes;
      if (!growth.hosted && !growth.wired && has_blocks(plan_of(*t))) {
        Cutter(plan_.settings.piece, growth.bytes, &m.blocks).cut(plan_of(*t).shape, t->random);
      }
      if (growth.hosted) outcome_.hosted += growth.bytes;
    }
    check_memory();
    ask_on(t, growth, a);
    if (t->growing.empty() && t->captures) return end_capture(t);
    if (!t->wants && t->growing.empty()) begin_work(t);
  }

  // Asks as the library does: first for the part that has to be in host memory, then for the rest.
  void ask_on(Tenant* t, Growth growth, const AnswerGrow& a) {
    constexpr int kTries = 8;
    const bool granted = a.answer == GrowAnswer::kGranted;
    if (granted && growth.rest.is_zero()) return;
    if (!granted && (++growth.tries > kTries || (!growth.hosted && a.to_host.is_zero()))) return;
    Growth next{growth.gpu, {}, false, !granted && !growth.hosted, {}, growth.tries};
    if (next.hosted) {
      next.bytes = a.to_host;
      next.rest = growth.bytes - a.to_host;
    } else {
      next.bytes = granted ? growth.rest : growth.bytes + growth.rest;
    }
    ask(t, next);
  }
};

}  // namespace gpurota::sched::testing_world
