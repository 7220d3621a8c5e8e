// The choices and typed text of the user of `gpurota top`. Plain data.
#pragma once

#include "cli/top/rows.h"

#include <string>

namespace gpurota::cli::topview {

// The input that the last line asks for.
enum class Asking { kNothing, kFilter, kUser, kExtend, kRelease, kDrain, kUndrain };

struct State {
  Choice choice{};
  Subject chosen{};  // the line that keys are about
  bool help = false;
  bool details = false;
  Asking asking = Asking::kNothing;
  Subject about{};        // what is asked about
  std::string typed{};    // UTF-8
  std::string before{};   // the filter, while another is typed
  std::string message{};  // what came of the last action; until the next key
  bool refused = false;   // the message says why it did not happen
};

}  // namespace gpurota::cli::topview
