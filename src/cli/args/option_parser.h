// The options that a command of gpurota has, and the values that several take. Pure.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/options.h"
#include "base/result.h"
#include "cli/raw.h"
#include "core/end_warning.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

using Words = std::vector<std::string>;

// The options of a command in command_table.h ("run", "job list"), and the options of every
// command. An empty name: the options without a command. The options write into `raw`, which must
// outlive them; the rows' names are static.
std::vector<Option> options_of(std::string_view command, Raw& raw);
// The options of an action ("job list"), with --help and --quiet. The other options of every
// command must come before the command.
std::vector<Option> action_options(std::string_view action, Raw& raw);
// Only the options of every command.
std::vector<Option> options_of_every_command(Raw& raw);

// Sets the options of `command` ("run", "job"; empty: no command) from `words`, as read_options()
// does.
Result<Words> parse_words(const std::vector<Option>& options, const std::string& command,
                          const Words& words, bool stop_at_word = false);

// The error for `word`, whose option `name` is not in `options`, with suggestions.
tl::unexpected<Error> no_option(const std::vector<Option>& options, const std::string& word,
                                std::string_view name, const std::string& command);

// Values that several commands take. check_amount() refuses less than 1 MiB, because the user has
// probably left out the unit.
Result<void> check_amount(const char* option, const std::string& text, Bytes amount);
Result<std::optional<SizeSpec>> size_of(const char* option, const std::optional<std::string>& text);
// "80%": 1 to 100.
Result<std::optional<int>> percent_of(const char* option, const std::optional<std::string>& text);
Result<std::optional<int>> number_of(const char* option, const std::optional<std::string>& text,
                                     int most);
Result<std::optional<std::chrono::seconds>> time_of(const char* option,
                                                    const std::optional<std::string>& text);
// "10m", "10m:USR1"; "0": no warning.
Result<std::optional<EndWarning>> warning_of(const std::optional<std::string>& text);
// The parts between commas, including those of repeated options; a part may be empty.
Words split_commas(const Words& given);
// "0,1": no part may be empty.
Result<Words> split_ids(const Words& given);

}  // namespace gpurota::cli
