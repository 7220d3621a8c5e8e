// The choices of the user of `gpurota top`, and the text that the user has typed. Plain data.
#pragma once

#include "cli/top/rows.h"

#include <string>

namespace gpurota::cli::topview {

// The input that the last line wants.
enum class Asking { kNothing, kFilter, kUser, kExtend, kRelease, kDrain, kUndrain };

struct State {
  Choice choice{};
  Subject chosen{};  // the line on which keys act
  bool help = false;
  bool details = false;
  Asking asking = Asking::kNothing;
  Subject about{};        // the subject of the question
  std::string typed{};    // UTF-8
  std::string before{};   // the old filter, while a new one is typed
  std::string message{};  // the result of the last action; until the next key
  bool refused = false;   // the message is a refusal
};

}  // namespace gpurota::cli::topview
