#include "sched/turns_view.h"

namespace gpurota::sched {

const char* to_string(Wait wait) {
  switch (wait) {
    case Wait::kNothing:
      return "nothing";
    case Wait::kTurn:
      return "its turn";
    case Wait::kMoving:
      return "its memory";
    case Wait::kDraining:
      return "the last holder's work";
    case Wait::kStopped:
      return "a process of its own that is stopped";
    case Wait::kHeldByStopped:
      return "memory of a stopped process";
    case Wait::kNoRoom:
      return "room: what cannot be moved leaves too little for it";
    case Wait::kNoHost:
      return "host memory: too little is left to move others out";
    case Wait::kRetry:
      return "a retry";
    case Wait::kRestart:
      return "the daemon's restart";
    case Wait::kLost:
      return "its GPU, which is lost";
    case Wait::kAside:
      return "its GPU not to be needed";
  }
  return "?";
}

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kApart:
      return "waiting";
    case Phase::kEntering:
      return "entering";
    case Phase::kHolding:
      return "holding";
    case Phase::kLeaving:
      return "leaving";
  }
  return "?";
}

}  // namespace gpurota::sched
