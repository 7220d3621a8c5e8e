// The keys of `gpurota top`: a state machine. Pure: a key changes the state, and may return an
// action for the daemon.
#pragma once

#include "cli/top/frame.h"

#include <cstdint>
#include <string>

namespace gpurota::cli::topview {

struct Key {
  enum Name : std::uint8_t {
    kCharacter,
    kUp,
    kDown,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace,
    kClear  // all that was typed
  };
  Name name = kCharacter;
  std::string character{};  // UTF-8
};

struct Action {
  enum Kind : std::uint8_t {
    kNothing,
    kQuit,
    kRedraw,
    kExtend,
    kRelease,
    kCancel,
    kDrain,
    kUndrain
  };
  Kind kind = kNothing;
  Subject about{};
  std::int64_t seconds = 0;  // of kExtend: until its end, from now
};

// `page`: how many lines a page is.
Action on_key(State& state, const Key& key, const Model& model, std::size_t page);

// Something is chosen as long as there is anything; what was chosen stays so while it is there.
void keep_choice(State& state, const Model& model);

// The question on the last line; empty: none.
std::string question(const State& state, const Model& model);

}  // namespace gpurota::cli::topview
