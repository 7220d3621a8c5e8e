#include "daemon/tenants/turn_looks.h"

namespace gpurota::daemon {

std::optional<TurnLook> KeptTurnLooks::look(LeaseId lease) const {
  const auto turn = turns_.turns().turn_of(lease);
  if (!turn) return std::nullopt;
  TurnLook look;
  look.out = turn->out;
  look.holds = turn->takes_turns && turn->holds;
  look.waits = turn->takes_turns && turn->waits;
  return look;
}

}  // namespace gpurota::daemon
