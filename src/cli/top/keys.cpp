#include "cli/top/keys.h"

#include "base/text.h"
#include "cli/text/ps_doctor_text.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpurota::cli::topview {
namespace {

constexpr std::size_t kMostTyped = 200;

void say(State& state, std::string text, bool refused = false) {
  state.message = std::move(text);
  state.refused = refused;
}

void move_choice(State& state, const Model& model, std::ptrdiff_t by) {
  const std::vector<Subject> all = subjects(make_rows(model, state.choice));
  if (all.empty()) return;
  const auto found = std::find(all.begin(), all.end(), state.chosen);
  const std::ptrdiff_t at = found == all.end() ? 0 : found - all.begin();
  const auto last = static_cast<std::ptrdiff_t>(all.size()) - 1;
  state.chosen = all[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at + by, 0, last))];
}

// Whether the key moves the choice.
bool is_moved(State& state, const Key& key, const Model& model, std::size_t page) {
  constexpr std::ptrdiff_t kFar = 1 << 20;
  const auto step = static_cast<std::ptrdiff_t>(std::max<std::size_t>(page, 1));
  const std::string& typed = key.character;
  if (key.name == Key::kUp || typed == "k") return move_choice(state, model, -1), true;
  if (key.name == Key::kDown || typed == "j") return move_choice(state, model, 1), true;
  if (key.name == Key::kPageUp) return move_choice(state, model, -step), true;
  if (key.name == Key::kPageDown) return move_choice(state, model, step), true;
  if (key.name == Key::kHome || typed == "g") return move_choice(state, model, -kFar), true;
  if (key.name == Key::kEnd || typed == "G") return move_choice(state, model, kFar), true;
  return false;
}

void ask(State& state, Asking what, std::string typed = {}) {
  state.asking = what;
  state.before = state.choice.filter;
  state.about = state.chosen;
  state.typed = std::move(typed);
}

const proto::Gpu* gpu_about(const Model& model, const Subject& about) {
  return about.gpu ? model.find_gpu(*about.gpu) : nullptr;
}

void ask_about_lease(State& state, const Model& model, Asking what) {
  if (state.chosen.request && what == Asking::kRelease) return ask(state, what);
  if (!state.chosen.lease || model.find_lease(*state.chosen.lease) == nullptr) {
    return say(state, "choose a lease first, with the arrow keys", true);
  }
  ask(state, what);
}

void ask_about_gpu(State& state, const Model& model) {
  const proto::Gpu* const gpu = gpu_about(model, state.chosen);
  if (gpu == nullptr) return say(state, "choose a GPU first, with the arrow keys", true);
  // The question keeps its meaning, even if another administrator changes the GPU before the
  // answer.
  const bool drained = gpu->state == proto::GpuState::kDraining;
  ask(state, drained ? Asking::kUndrain : Asking::kDrain);
}

void leave(State& state) {
  if (state.help) {
    state.help = false;
  } else if (state.details) {
    state.details = false;
  } else {
    state.choice.filter.clear();
    state.choice.user.clear();
  }
}

void next_sort(State& state) {
  const auto next = (static_cast<int>(state.choice.sort) + 1) % 4;
  state.choice.sort = static_cast<Sort>(next);
  say(state, fmt::format("leases by {}", sort_name(state.choice.sort)));
}

Action on_letter(State& state, const std::string& letter, const Model& model) {
  if (letter == "q") return {Action::kQuit};
  if (letter == "\f") return {Action::kRedraw};
  if (letter == "?" || letter == "h") state.help = !state.help;
  if (letter == "/") ask(state, Asking::kFilter, state.choice.filter);
  if (letter == "u") ask(state, Asking::kUser, state.choice.user);
  if (letter == "s") next_sort(state);
  if (letter == "t") state.choice.processes = !state.choice.processes;
  if (letter == "e") ask_about_lease(state, model, Asking::kExtend);
  if (letter == "r") ask_about_lease(state, model, Asking::kRelease);
  if (letter == "d") ask_about_gpu(state, model);
  return {};
}

Action extend(State& state) {
  const auto lasts = parse_duration(state.typed);
  if (!lasts) {
    say(state, lasts.error().message, true);
    return {};
  }
  return {Action::kExtend, state.about, lasts->count()};
}

// The action for the answer to a question; "y" agrees.
Action decided(State& state, Asking asked) {
  if (state.typed != "y" && state.typed != "Y" && state.typed != "yes") {
    say(state, "nothing is changed");
    return {};
  }
  if (asked == Asking::kRelease) {
    return {state.about.request ? Action::kCancel : Action::kRelease, state.about};
  }
  return {asked == Asking::kUndrain ? Action::kUndrain : Action::kDrain, state.about};
}

Action answered(State& state) {
  const Asking asked = std::exchange(state.asking, Asking::kNothing);
  switch (asked) {
    case Asking::kFilter:
      state.choice.filter = state.typed;
      return {};
    case Asking::kUser:
      state.choice.user = state.typed;
      return {};
    case Asking::kExtend:
      return extend(state);
    case Asking::kRelease:
    case Asking::kDrain:
    case Asking::kUndrain:
      return decided(state, asked);
    case Asking::kNothing:
      break;
  }
  return {};
}

void remove_character(std::string& typed) {
  while (!typed.empty() && (static_cast<unsigned char>(typed.back()) & 0xC0) == 0x80) {
    typed.pop_back();
  }
  if (!typed.empty()) typed.pop_back();
}

Action on_answer_key(State& state, const Key& key) {
  const bool yes_or_no = state.asking == Asking::kRelease || state.asking == Asking::kDrain ||
                         state.asking == Asking::kUndrain;
  if (key.name == Key::kEscape) {
    if (state.asking == Asking::kFilter) state.choice.filter = state.before;
    state.asking = Asking::kNothing;
  } else if (key.name == Key::kEnter) {
    return answered(state);
  } else if (key.name == Key::kBackspace) {
    remove_character(state.typed);
  } else if (key.name == Key::kClear) {
    state.typed.clear();
  } else if (key.name == Key::kCharacter && yes_or_no) {
    state.typed = key.character;
    return answered(state);
  } else if (key.name == Key::kCharacter && state.typed.size() < kMostTyped &&
             static_cast<unsigned char>(key.character.front()) >= 0x20) {
    state.typed += key.character;
  }
  // Apply the filter while it is being typed.
  if (state.asking == Asking::kFilter) state.choice.filter = state.typed;
  return {};
}

std::string release_question(const State& state, const Model& model) {
  if (state.about.request) {
    return fmt::format("cancel request {}? [y/N] ", to_string(*state.about.request));
  }
  const proto::Lease* const lease = model.find_lease(*state.about.lease);
  return fmt::format("release {}{} and end its processes? [y/N] ", to_string(*state.about.lease),
                     lease ? " of " + person_text(lease->user, lease->as_name) : "");
}

std::string drain_question(const State& state, const Model& model) {
  const proto::Gpu* const gpu = gpu_about(model, state.about);
  if (gpu == nullptr) return "the GPU is gone ";
  return state.asking == Asking::kUndrain
             ? fmt::format("put GPU {} back into service? [y/N] ", label_of(*gpu))
             : fmt::format("take GPU {} out of service? Current leases continue. [y/N] ",
                           label_of(*gpu));
}

}  // namespace

Action on_key(State& state, const Key& key, const Model& model, std::size_t page) {
  state.message.clear();
  if (key.name == Key::kCharacter && key.character.empty()) return {};
  Action action;
  if (state.asking != Asking::kNothing) {
    action = on_answer_key(state, key);
  } else if (key.name == Key::kEscape) {
    leave(state);
  } else if (key.name == Key::kEnter) {
    state.details = !state.details && state.chosen.is_something();
  } else if (!is_moved(state, key, model, page)) {
    action = on_letter(state, key.character, model);
  }
  keep_choice(state, model);
  return action;
}

void keep_choice(State& state, const Model& model) {
  const std::vector<Subject> all = subjects(make_rows(model, state.choice));
  if (std::find(all.begin(), all.end(), state.chosen) != all.end()) return;
  state.details = false;
  // When the chosen lease has ended, the choice stays at its GPU.
  const auto same_gpu = std::find_if(all.begin(), all.end(), [&](const Subject& each) {
    return state.chosen.gpu && each.gpu == state.chosen.gpu;
  });
  state.chosen = same_gpu != all.end() ? *same_gpu : all.empty() ? Subject{} : all.front();
}

std::string question(const State& state, const Model& model) {
  switch (state.asking) {
    case Asking::kFilter:
      return "show only what has this text: ";
    case Asking::kUser:
      return "show only leases of user (empty: all): ";
    case Asking::kExtend:
      return fmt::format("{} ends how long from now (45m, 2h, 1d)? ",
                         state.about.lease ? to_string(*state.about.lease) : "");
    case Asking::kRelease:
      return release_question(state, model);
    case Asking::kDrain:
    case Asking::kUndrain:
      return drain_question(state, model);
    case Asking::kNothing:
      break;
  }
  return "";
}

}  // namespace gpurota::cli::topview
