#include "cli/args/option_parser.h"

#include "base/text.h"
#include "cli/args/command_names.h"
#include "cli/args/command_table.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gpurota::cli {
void Option::set(const std::string& text) const {
  if (flag != nullptr) *flag = true;
  if (value != nullptr) *value = text;
  if (values != nullptr) values->push_back(text);
}

namespace {

void append(std::span<const OptionRow> rows, Raw& raw, std::vector<Option>& options) {
  for (const OptionRow& row : rows) {
    options.push_back({row.letter, row.name, row.flag != nullptr ? &(raw.*row.flag) : nullptr,
                       row.value != nullptr ? &(raw.*row.value) : nullptr,
                       row.values != nullptr ? &(raw.*row.values) : nullptr, row.words});
  }
}

}  // namespace

std::vector<Option> options_of_every_command(Raw& raw) {
  std::vector<Option> options;
  append(cli::options_of_every_command(), raw, options);
  return options;
}

std::vector<Option> action_options(std::string_view action, Raw& raw) {
  std::vector<Option> options = {{'h', "--help", &raw.help}, {'q', "--quiet", &raw.quiet}};
  if (const CommandRow* const row = find_command(action)) append(row->options, raw, options);
  return options;
}

std::vector<Option> options_of(std::string_view command, Raw& raw) {
  std::vector<Option> options = options_of_every_command(raw);
  if (command.empty()) append(options_without_command(), raw, options);
  if (const CommandRow* const row = find_command(command)) append(row->options, raw, options);
  return options;
}

Result<Words> OptionParser::parse(const Words& words, bool stop_at_word) {
  Words rest;
  for (at_ = 0; at_ < words.size(); ++at_) {
    const std::string& word = words[at_];
    if (word.size() < 2 || word.front() != '-') {
      rest.push_back(word);
      if (!stop_at_word) continue;
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words.end());
      break;
    }
    GPUROTA_TRY(word[1] == '-' ? parse_long(words) : parse_letters(words));
  }
  return rest;
}

Result<void> OptionParser::parse_long(const Words& words) {
  const std::string& word = words[at_];
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto option = std::find_if(options_.begin(), options_.end(),
                                   [&](const Option& o) { return o.name == name; });
  const bool has_value = equals != std::string::npos;
  if (option == options_.end() || (has_value && !option->takes_value())) {
    return no_such_option(word, name);
  }
  if (has_value) {
    GPUROTA_TRY(check_word(*option, word.substr(equals + 1)));
    option->set(word.substr(equals + 1));
    return {};
  }
  return take_value(*option, words);
}

// "-v", "-m8G", "-vm 8G".
Result<void> OptionParser::parse_letters(const Words& words) {
  const std::string& word = words[at_];
  for (std::size_t i = 1; i < word.size(); ++i) {
    const auto option = std::find_if(options_.begin(), options_.end(),
                                     [&](const Option& o) { return o.letter == word[i]; });
    if (option == options_.end()) return no_such_option(word, std::string{'-', word[i]});
    if (option->takes_value() && i + 1 < word.size()) {
      option->set(word.substr(i + 1));
      return {};
    }
    GPUROTA_TRY(take_value(*option, words));
  }
  return {};
}

namespace {

// What docker, podman and others call it.
bool is_detaching(std::string_view name) {
  return name == "-d" || name == "--detach" || name == "--background" || name == "--daemon";
}

}  // namespace

tl::unexpected<Error> no_such_option(const std::vector<Option>& options, const std::string& word,
                                     std::string_view name, const std::string& command) {
  std::vector<std::string_view> names;
  for (const Option& option : options) {
    if (std::find(names.begin(), names.end(), option.name) == names.end()) {
      names.push_back(option.name);
    }
  }
  if (command == "run" && is_detaching(name)) {
    return fail(Code::kInvalid,
                fmt::format("there is no option '{}': 'gpurota run' stays with its command. A job "
                            "runs without a terminal, also after you log out:\n  gpurota job add "
                            "NAME [OPTION…] -- COMMAND",
                            display_text(word, 60)));
  }
  return fail(Code::kInvalid,
              fmt::format("there is no option '{}'{} (see 'gpurota {}--help')",
                          display_text(word, 60), did_you_mean(meant_options(name, names), ""),
                          command.empty() ? "" : command + " "));
}

tl::unexpected<Error> OptionParser::no_such_option(const std::string& word,
                                                   std::string_view name) const {
  return cli::no_such_option(options_, word, name, command_);
}

Result<void> OptionParser::take_value(const Option& option, const Words& words) {
  // A value that is spelled as an option is written behind "=".
  const auto is_option = [this](const std::string& word) {
    return std::any_of(options_.begin(), options_.end(), [&](const Option& o) {
      return o.name == std::string_view(word).substr(0, word.find('='));
    });
  };
  if (!option.takes_value()) {
    option.set("");
  } else if (at_ + 1 < words.size() && !is_option(words[at_ + 1])) {
    GPUROTA_TRY(check_word(option, words[at_ + 1]));
    option.set(words[++at_]);
  } else {
    return fail(Code::kInvalid, fmt::format("{} needs a value (see 'gpurota {}--help')",
                                            option.name, command_.empty() ? "" : command_ + " "));
  }
  return {};
}

Result<void> check_word(const Option& option, const std::string& value) {
  std::vector<std::string_view> words;
  std::string listed;
  for (std::string_view rest = option.words; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    listed += words.empty() ? "" : rest.empty() ? " or " : ", ";
    listed += word;
    words.push_back(word);
  }
  if (words.empty() || std::find(words.begin(), words.end(), value) != words.end()) return {};
  return fail(Code::kInvalid,
              fmt::format("{}: '{}' is not {}", option.name, display_text(value, 40), listed));
}

Result<void> check_amount(const char* option, const std::string& text, Bytes amount) {
  if (amount >= mib(1)) return {};
  const std::string number = text.substr(0, text.find_first_not_of("0123456789"));
  // A large number was thought of as MiB, as other tools have it.
  const char* const unit = number.size() > 2 ? "M" : "G";
  return fail(Code::kInvalid, fmt::format("{}: '{}' is less than 1 MiB: did you mean {}{}?", option,
                                          display_text(text, 40), number, unit));
}

Result<std::optional<int>> percent_of(const char* option, const std::optional<std::string>& text) {
  if (!text) return std::optional<int>();
  const auto share = parse_size_spec(*text);
  if (share && share->percent > 0) return std::optional(share->percent);
  return fail(Code::kInvalid, fmt::format("{}: '{}' is not a share: write 80%, from 1% to 100%",
                                          option, display_text(*text, 40)));
}

Result<std::optional<SizeSpec>> size_of(const char* option,
                                        const std::optional<std::string>& text) {
  if (!text) return std::optional<SizeSpec>();
  auto size = parse_size_spec(*text);
  if (!size) return fail(Code::kInvalid, fmt::format("{}: {}", option, size.error().message));
  if (size->percent == 0) GPUROTA_TRY(check_amount(option, *text, size->bytes));
  return std::optional(*size);
}

Result<std::optional<int>> number_of(const char* option, const std::optional<std::string>& text,
                                     int most) {
  if (!text) return std::optional<int>();
  int number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end || number < 1 || number > most) {
    return fail(Code::kInvalid, fmt::format("{}: '{}' is not a number from 1 to {}", option,
                                            display_text(*text, 40), most));
  }
  return std::optional(number);
}

Result<std::optional<std::chrono::seconds>> time_of(const char* option,
                                                    const std::optional<std::string>& text) {
  using Time = std::optional<std::chrono::seconds>;
  if (!text) return Time();
  auto time = parse_duration(*text);
  if (!time) return fail(Code::kInvalid, fmt::format("{}: {}", option, time.error().message));
  return Time(*time);
}

// "0,1" and repeated options alike.
Words split_commas(const Words& given) {
  Words parts;
  for (const std::string& text : given) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  return parts;
}

Result<Words> split_ids(const Words& given) {
  Words ids = split_commas(given);
  if (std::find(ids.begin(), ids.end(), "") == ids.end()) return ids;
  return fail(Code::kInvalid, "--gpu-ids: write ids between commas: --gpu-ids 0,1");
}

Result<std::optional<EndWarning>> warning_of(const std::optional<std::string>& text) {
  using Found = std::optional<EndWarning>;
  if (!text) return Found();
  const auto colon = text->find(':');
  const std::string time = text->substr(0, colon);
  std::optional<std::string> signal;
  if (colon != std::string::npos) signal = text->substr(colon + 1);
  std::optional<std::chrono::seconds> before = std::chrono::seconds(0);
  if (time != "0" && time != "0s") {
    GPUROTA_ASSIGN_OR_RETURN(before, time_of("--warn", time));
  }
  auto warning = make_end_warning(before->count(), signal);
  if (!warning) return fail(Code::kInvalid, "--warn: " + warning.error().message);
  return Found(*warning);
}

}  // namespace gpurota::cli
