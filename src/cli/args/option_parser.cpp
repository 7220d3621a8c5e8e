#include "cli/args/option_parser.h"

#include "base/text.h"
#include "cli/args/command_names.h"
#include "cli/args/command_table.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gpurota::cli {
namespace {

void append(std::span<const OptionRow> rows, Raw& raw, std::vector<Option>& options) {
  for (const OptionRow& row : rows) {
    Option& option = options.emplace_back(Option{row.letter, row.name, {}, {}, {}, row.words});
    if (row.flag != nullptr) option.to = &(raw.*row.flag);
    if (row.value != nullptr) option.to = &(raw.*row.value);
    if (row.values != nullptr) option.to = &(raw.*row.values);
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

namespace {

// Whether docker, podman or another program has an option of this name that detaches.
bool is_detaching(std::string_view name) {
  return name == "-d" || name == "--detach" || name == "--background" || name == "--daemon";
}

std::string help_of(const std::string& command) {
  return command.empty() ? "gpurota --help" : "gpurota " + command + " --help";
}

}  // namespace

tl::unexpected<Error> no_option(const std::vector<Option>& options, const std::string& word,
                                std::string_view name, const std::string& command) {
  if (command == "run" && is_detaching(name)) {
    return fail(Code::kInvalid,
                fmt::format("there is no option '{}': 'gpurota run' stays with its command. A job "
                            "runs without a terminal, even after you log out:\n  gpurota job add "
                            "NAME [OPTION…] -- COMMAND",
                            display_text(word, 60)));
  }
  return no_such_option(word, meant_options(name, option_names(options)), help_of(command));
}

Result<Words> parse_words(const std::vector<Option>& options, const std::string& command,
                          const Words& words, bool stop_at_word) {
  const auto refuse = [&](const std::string& word, std::string_view name) {
    return no_option(options, word, name, command);
  };
  return read_options(options, {help_of(command), stop_at_word, false, refuse}, words);
}

Result<void> check_amount(const char* option, const std::string& text, Bytes amount) {
  if (amount >= mib(1)) return {};
  const std::string number = text.substr(0, text.find_first_not_of("0123456789"));
  // The user probably meant a large number in MiB, as in other tools, and a small number in GiB.
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

// "0,1" and repeated options are equivalent.
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
