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

// Those of a command of command_table.h ("run", "job list") and of every command, writing into
// `raw`; of an empty name those that stand without a command. The rows' names outlive everything;
// `raw` must outlive the options.
std::vector<Option> options_of(std::string_view command, Raw& raw);
// Of an action ("job list"), --help and --quiet: the other options of every command stand before
// the command there.
std::vector<Option> action_options(std::string_view action, Raw& raw);
// Those of every command alone.
std::vector<Option> options_of_every_command(Raw& raw);

// Sets the options of `command` ("run", "job"; empty: none), as read_options() does.
Result<Words> parse_words(const std::vector<Option>& options, const std::string& command,
                          const Words& words, bool stop_at_word = false);

// `word`, whose option is called `name`, is none of `options`: what it may have been meant for.
tl::unexpected<Error> no_option(const std::vector<Option>& options, const std::string& word,
                                std::string_view name, const std::string& command);

// Values that several commands take.
// Nobody means less than 1 MiB: a unit was forgotten.
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
// The parts between commas, of repeated options alike; some may be empty.
Words split_commas(const Words& given);
// "0,1": none of them empty.
Result<Words> split_ids(const Words& given);

}  // namespace gpurota::cli
