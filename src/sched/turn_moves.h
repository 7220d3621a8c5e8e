// What moves: room is made by those whose turn is furthest away, and given to those who have theirs. A part of Turns.
#pragma once

#include "sched/turn_order.h"

namespace gpurota::sched {

class TurnMoves {
 public:
  TurnMoves(TurnTable& table, const TurnOrder& order) : table_(table), order_(order) {}

  void move();

 private:
  void make_room(GpuSlot gpu, Bytes lacking, bool entering_too);
  void give_room(LeaseState& lease, GpuSlot gpu);
  void serve_growth(LeaseState& lease, TenantId id, GpuSlot gpu);
  void evict_aside(GpuSlot gpu);
  // What those with a turn need on this GPU beyond what is free.
  Bytes lacking(GpuSlot gpu) const;
  std::vector<TenantId> victims(GpuSlot gpu, bool entering_too) const;
  void begin_order(TenantId id, GpuSlot gpu);
  Bytes order_out(TenantId tenant, GpuSlot gpu, Bytes bytes);

  TurnTable& table_;
  const TurnOrder& order_;
};

}  // namespace gpurota::sched
