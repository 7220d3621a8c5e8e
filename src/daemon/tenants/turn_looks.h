// What the history records of turns: who has one, and who waits for one. State thread only.
#pragma once

#include "daemon/history/series_keeper.h"
#include "daemon/tenants/turn_keeper.h"
#include "ports/event_loop.h"

namespace gpurota::daemon {

class KeptTurnLooks final : public TurnLooks {
 public:
  // Both outlive it.
  KeptTurnLooks(const TurnKeeper& turns, const ports::EventLoop& loop)
      : turns_(turns), loop_(loop) {}

  std::optional<TurnLook> look(LeaseId lease) const override;

 private:
  const TurnKeeper& turns_;
  const ports::EventLoop& loop_;
};

}  // namespace gpurota::daemon
