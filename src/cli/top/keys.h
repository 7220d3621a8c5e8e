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
    kClear  // all typed text
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
  std::int64_t seconds = 0;  // for kExtend: from now until its end
};

// `page`: the number of lines of a page.
Action on_key(State& state, const Key& key, const Model& model, std::size_t page);

// Keeps the choice while its subject is there; else chooses another, if there is any.
void keep_choice(State& state, const Model& model);

// The question on the last line; empty: none.
std::string question(const State& state, const Model& model);

}  // namespace gpurota::cli::topview
