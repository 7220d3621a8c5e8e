// Moves memory as the library does: one thread takes all orders so far, moves whole blocks
// (evicts at least as many bytes as ordered, restores at most as many), reports each block, and
// returns the rest of the order. For turns_world_test.cpp only.
#pragma once

#include "sched/turns_tenants_test.h"

namespace gpurota::sched::testing_world {

class BlockMovers : protected Tenants {
 protected:
  using Tenants::Tenants;

  virtual void check_memory() = 0;

  static bool has_blocks(const LeasePlan& plan) { return plan.shape != Shape::kAny; }

  void move_blocks(Tenant* t) {
    if (t->moves) return;
    for (std::size_t g = 0; g < t->gpus.size(); ++g) {
      GpuMemory& m = t->gpus[g];
      if (!m.to_evict.is_zero()) return evict_blocks(t, g, std::exchange(m.to_evict, {}));
      if (!m.to_restore.is_zero()) return restore_blocks(t, g, std::exchange(m.to_restore, {}));
    }
  }

  // Frees blocks of a program that runs or waits, even those being moved.
  void free_blocks(Tenant* t, std::size_t g) {
    GpuMemory& m = t->gpus[g];
    Bytes here, out;
    const double part = t->uniform();
    for (auto b = m.blocks.begin(); b != m.blocks.end();) {
      const bool freed = t->uniform() < part;
      b->freed = b->freed || (freed && b->moving);
      if (!freed || b->moving) {
        ++b;
        continue;
      }
      (b->out ? out : here) += b->size;
      b = m.blocks.erase(b);
    }
    shrink(t, g, here, out);
  }

  void shrink(Tenant* t, std::size_t g, Bytes here, Bytes out) {
    t->gpus[g].resident -= here;
    t->gpus[g].out -= out;
    if (!(here + out).is_zero()) say(t, Shrink{t->id, plan_.gpus[g].uuid, here, out, {}});
  }

  // A stopped process finishes nothing until it continues.
  void finish(Tenant* t, const std::function<void()>& run) {
    if (t->dead) return;
    if (!t->stopped) return run();
    after(0.01, [this, t, run] { finish(t, run); });
  }

 private:
  void evict_blocks(Tenant* t, std::size_t g, Bytes ordered) {
    GpuMemory& m = t->gpus[g];
    if (m.resident.is_zero()) return say(t, Evicted{t->id, plan_.gpus[g].uuid, {}, ordered});
    t->moves = m.evicting = true;
    evict_next(t, g, ordered);
  }

  void evict_next(Tenant* t, std::size_t g, Bytes left) {
    GpuMemory& m = t->gpus[g];
    if (t->open) fail("memory of a running tenant is evicted");
    const auto b = std::find_if(m.blocks.begin(), m.blocks.end(),
                                [](const Block& block) { return !block.out; });
    const bool fails = move_fails(*t, g);
    if (left.is_zero() || b == m.blocks.end() || fails) {
      if (!left.is_zero()) say(t, Evicted{t->id, plan_.gpus[g].uuid, {}, left, fails});
      m.evicting = false;
      return end_run(t);
    }
    b->moving = true;
    after(seconds_of(b->size), [this, t, g, left, b] {
      finish(t, [this, t, g, left, b] {
        GpuMemory& memory = t->gpus[g];
        const Bytes size = b->size;
        b->moving = false;
        b->out = true;
        memory.resident -= size;
        memory.out += size;
        if (plan_of(*t).doubted) memory.lingering += size;
        say(t, Evicted{t->id, plan_.gpus[g].uuid, size, {}, false});
        check_memory();
        if (b->freed) shrink(t, g, {}, size), memory.blocks.erase(b);
        evict_next(t, g, left - size);
      });
    });
  }

  void restore_blocks(Tenant* t, std::size_t g, Bytes room) {
    t->moves = true;
    restore_next(t, g, room);
  }

  void restore_next(Tenant* t, std::size_t g, Bytes room) {
    GpuMemory& m = t->gpus[g];
    const bool fails = move_fails(*t, g) && !m.out.is_zero();
    const auto b = std::find_if(m.blocks.begin(), m.blocks.end(), [room](const Block& block) {
      return block.out && block.size <= room;
    });
    if (b == m.blocks.end() || fails) {
      if (!room.is_zero()) say(t, Restored{t->id, plan_.gpus[g].uuid, {}, room, fails});
      return end_run(t);
    }
    b->moving = true;
    m.arriving = b->size;
    check_memory();
    after(seconds_of(b->size), [this, t, g, room, b] {
      finish(t, [this, t, g, room, b] {
        GpuMemory& memory = t->gpus[g];
        const Bytes size = b->size;
        memory.arriving = Bytes();
        b->moving = b->out = false;
        memory.resident += size;
        memory.out -= size;
        say(t, Restored{t->id, plan_.gpus[g].uuid, size, {}, false});
        if (b->freed) shrink(t, g, size, {}), memory.blocks.erase(b);
        restore_next(t, g, room - size);
      });
    });
  }

  void end_run(Tenant* t) {
    t->moves = false;
    move_blocks(t);
  }

  double seconds_of(Bytes size) const {
    return static_cast<double>(size.count()) / plan_.bytes_per_second;
  }
};

}  // namespace gpurota::sched::testing_world
