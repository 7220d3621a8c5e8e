#include "cli/site/setup_file.h"

#include "base/text.h"
#include "config/changes.h"
#include "config/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpurota::cli {
namespace {

using config::Value;
using Kind = config::Value::Kind;

constexpr std::string_view kEnabled = "automatic.enabled";
constexpr std::string_view kMemory = "automatic.memory";

constexpr auto kQuestions = std::to_array<SetupQuestion>({
    {"--group", "group", "Which group may use the GPUs?", "everybody"},
    {"--admin-group", "admin_group", "Which group may look after gpurota, besides root?", "none"},
    {"--user-gpus", "limits.gpus", "How many GPUs may one user have at a time?", "unlimited",
     SetupKind::kNumber},
    {"--longest", "limits.duration", "How long may a lease last (3d, 12h)?", "unlimited",
     SetupKind::kTime},
    {"--automatic", kMemory,
     "How much memory of a GPU does a program get that was started without gpurota (8G)?", "off",
     SetupKind::kAutomatic},
    {"--strict", "access.strict", "May only those with a lease open the GPUs' device files?", "off",
     SetupKind::kFlag},
});

bool is_ours(std::string_view key) {
  return key == kEnabled || std::any_of(kQuestions.begin(), kQuestions.end(),
                                        [&](const SetupQuestion& each) { return each.key == key; });
}

Result<std::string> toml_text(const std::string& answer) {
  const bool is_plain = std::all_of(answer.begin(), answer.end(), [](unsigned char c) {
    return c > ' ' && c != '"' && c != '\\' && c != 0x7F;
  });
  if (is_plain && !answer.empty()) return "\"" + answer + "\"";
  return fail(Code::kInvalid, fmt::format("'{}' can be neither a name nor an amount: leave out "
                                          "spaces and quotes",
                                          display_text(answer, 60)));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

tl::unexpected<Error> not_an_answer(const SetupQuestion& question, const std::string& answer,
                                    std::string_view instead) {
  return fail(Code::kInvalid, fmt::format("{}: write {}, not '{}'", question.option, instead,
                                          display_text(answer, 40)));
}

// Empty: the setting is removed.
Result<std::string> toml_of(const SetupQuestion& question, const std::string& answer) {
  const bool nothing = answer == question.nothing;
  switch (question.kind) {
    case SetupKind::kName:
    case SetupKind::kAutomatic:
      return nothing ? Result<std::string>(std::string()) : toml_text(answer);
    case SetupKind::kTime:
      return toml_text(answer);
    case SetupKind::kNumber:
      if (nothing) return toml_text(answer);
      if (!is_number(answer)) return not_an_answer(question, answer, "2 or unlimited");
      return answer;
    case SetupKind::kFlag:
      if (answer != "on" && answer != "off") return not_an_answer(question, answer, "on or off");
      return std::string(answer == "on" ? "true" : "false");
  }
  return std::string();
}

// Collects the values of the file by their keys.
Result<void> flatten(const Value& table, const std::string& prefix, const std::string& file,
                     SetupValues& values) {
  for (const auto& [name, value] : table.table) {
    const std::string key = prefix + name;
    if (value.is(Kind::kTable)) {
      GPUROTA_TRY(flatten(value, key + ".", file, values));
      continue;
    }
    if (!is_ours(key)) {
      return fail(Code::kInvalid,
                  to_string(config::Problem{{file, value.line},
                                            key,
                                            "'gpurota setup' did not write this: move it to "
                                            "another file beside it"}));
    }
    if (value.is(Kind::kNumber)) {
      values[key] = std::to_string(value.number);
    } else if (value.is(Kind::kFlag)) {
      values[key] = value.flag ? "true" : "false";
    } else {
      GPUROTA_ASSIGN_OR_RETURN(values[key], toml_text(value.text));
    }
  }
  return {};
}

std::string_view section_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

}  // namespace

std::span<const SetupQuestion> setup_questions() { return kQuestions; }

Result<SetupValues> parse_setup_file(const config::Text& text) {
  const auto parsed = config::parse_document(text);
  if (!parsed) return fail(Code::kInvalid, to_string(parsed.error()));
  SetupValues values;
  GPUROTA_TRY(flatten(*parsed, "", text.file, values));
  return values;
}

std::string setup_file_text(const SetupValues& values) {
  std::string text =
      "# Written by 'gpurota setup', which changes only what it is asked to. Other settings "
      "belong\n"
      "# into another file beside this one, or into the main file.\n";
  // A setting without a section must come before the first section.
  for (const auto& [key, value] : values) {
    if (section_of(key).empty()) text += fmt::format("{} = {}\n", key, value);
  }
  std::string_view section;
  for (const auto& [key, value] : values) {
    const std::string_view own = section_of(key);
    if (own.empty()) continue;
    if (own != section) text += fmt::format("\n[{}]\n", own);
    section = own;
    text += fmt::format("{} = {}\n", key.substr(own.size() + 1), value);
  }
  return text;
}

Result<void> put_answer(SetupValues& values, const SetupQuestion& question,
                        const std::string& answer) {
  std::string& value = values[std::string(question.key)];
  const auto taken = toml_of(question, answer);
  if (taken) value = *taken;
  if (question.kind == SetupKind::kAutomatic && taken) {
    values[std::string(kEnabled)] = taken->empty() ? "false" : "true";
  }
  if (value.empty()) values.erase(std::string(question.key));
  return taken ? Result<void>() : tl::unexpected(taken.error());
}

std::string answer_now(const config::Config& config, const SetupQuestion& question) {
  if (question.kind == SetupKind::kAutomatic && !config.automatic.enabled) {
    return std::string(question.nothing);
  }
  for (const config::ShownSetting& setting : config::shown_settings(config)) {
    if (setting.key != question.key) continue;
    if (question.kind == SetupKind::kFlag) return setting.value == "true" ? "on" : "off";
    return setting.value == setting.usual ? std::string(question.nothing) : setting.value;
  }
  return std::string(question.nothing);
}

}  // namespace gpurota::cli
