// What the history records of turns: who has one, and who waits for one. State thread only.
#pragma once

#include "daemon/history/series_keeper.h"
#include "daemon/tenants/turn_keeper.h"

namespace gpurota::daemon {

class KeptTurnLooks final : public TurnLooks {
 public:
  // Outlives it.
  explicit KeptTurnLooks(const TurnKeeper& turns) : turns_(turns) {}

  std::optional<TurnLook> look(LeaseId lease) const override;

 private:
  const TurnKeeper& turns_;
};

}  // namespace gpurota::daemon
