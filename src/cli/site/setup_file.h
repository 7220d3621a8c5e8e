// The questions of `gpurota setup`, and the drop-in of the configuration that it writes: its own
// settings and nothing else, so that it can be run again. Pure.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "config/loaded.h"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace gpurota::cli {

inline constexpr std::string_view kSetupFile = "50-setup.toml";

enum class SetupKind {
  kName,
  kNumber,
  kTime,
  kFlag,       // on or off
  kAutomatic,  // the size of automatic leases, which are off without one
};

struct SetupQuestion {
  std::string_view option;    // "--group", which answers it
  std::string_view key;       // "group"
  std::string_view question;  // of a person
  std::string_view nothing;   // the answer that limits nothing: "everybody"
  SetupKind kind = SetupKind::kName;
};
std::span<const SetupQuestion> setup_questions();

// By key the values, as TOML writes them.
using SetupValues = std::map<std::string, std::string, std::less<>>;

// Of the file as it is. kInvalid if it has what setup did not write: nothing of that is lost.
Result<SetupValues> parse_setup_file(const config::Text& text);
std::string setup_file_text(const SetupValues& values);

// Takes an answer over. kInvalid with what to write; whether the setting itself can be so says the
// configuration's own parser.
Result<void> put_answer(SetupValues& values, const SetupQuestion& question,
                        const std::string& answer);
// The value in effect, in the words of an answer.
std::string answer_now(const config::Config& config, const SetupQuestion& question);

}  // namespace gpurota::cli
