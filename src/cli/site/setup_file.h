// The questions of `gpurota setup`, and the drop-in that it writes: only its own settings, so that
// it can be run again. Pure.
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
  std::string_view option;    // "--group", which answers the question
  std::string_view key;       // "group"
  std::string_view question;  // for a person
  std::string_view nothing;   // the answer without a restriction: "everybody"
  SetupKind kind = SetupKind::kName;
};
std::span<const SetupQuestion> setup_questions();

// Values by key, as written in TOML.
using SetupValues = std::map<std::string, std::string, std::less<>>;

// The values of the existing file. kInvalid if it has anything that setup did not write, so that
// nothing is lost.
Result<SetupValues> parse_setup_file(const config::Text& text);
std::string setup_file_text(const SetupValues& values);

// Takes an answer. kInvalid says what to write. Whether the setting accepts the value is decided by
// the parser of the configuration.
Result<void> put_answer(SetupValues& values, const SetupQuestion& question,
                        const std::string& answer);
// The value in effect, in the form of an answer.
std::string answer_now(const config::Config& config, const SetupQuestion& question);

}  // namespace gpurota::cli
