#include "daemon/tenants/turn_looks.h"

namespace gpurota::daemon {
namespace {

bool is_for_turn(sched::Wait wait) {
  switch (wait) {
    case sched::Wait::kNothing:
    case sched::Wait::kRestart:
    case sched::Wait::kAside:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::optional<TurnLook> KeptTurnLooks::look(LeaseId lease) const {
  const auto view = turns_.turns().explain(lease, loop_.now());
  if (!view) return std::nullopt;
  TurnLook look;
  for (const sched::LeaseView::Gpu& gpu : view->gpus) look.out += gpu.out;
  if (!view->takes_turns) return look;
  look.holds = view->phase == sched::Phase::kHolding || view->phase == sched::Phase::kEntering;
  look.waits = is_for_turn(view->wait);
  return look;
}

}  // namespace gpurota::daemon
