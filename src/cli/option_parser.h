// Options of one command: which there are, what each writes into, and going through the words. Pure;
// for args.cpp and queue_args.cpp.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

using Words = std::vector<std::string>;

// What the options write into, as it was typed.
struct Raw {
  std::optional<std::string> runtime_dir, memory, soft_limit, note, gpus;
  std::optional<std::string> since, days, by, as_name, lease, reason, time, wait;
  std::optional<std::string> memory_threshold, priority, capacity, quantum, turns;
  Words gpu_ids, positional;
  bool summary = false, watch = false, follow = false, csv = false;
  bool verbose = false, json = false, all = false, help = false, version = false;
  bool filler = false;
  bool nonblock = false, force = false, is_short = false, all_users = false, yes = false;
  bool swap = false, oversize = false, reset = false;
};

struct Option {
  char letter;  // '\0': none
  std::string_view name;
  bool* flag = nullptr;  // one of the three
  std::optional<std::string>* value = nullptr;
  Words* values = nullptr;

  bool takes_value() const { return flag == nullptr; }
  void set(const std::string& text) const;
};

std::vector<Option> common_options(Raw& raw);
// What a lease is asked for with, by run and by reserve.
std::vector<Option> lease_options(Raw& raw);
// All those of `gpurota run` (args.cpp).
std::vector<Option> run_option_table(Raw& raw);

// Goes through words in order.
class OptionParser {
 public:
  OptionParser(std::vector<Option> options, std::string command)
      : options_(std::move(options)), command_(std::move(command)) {}

  // Sets the options. What is neither an option nor its value comes back: the first such word and
  // all behind it if `stop_at_word`, else each.
  Result<Words> parse(const Words& words, bool stop_at_word);

 private:
  Result<void> parse_long(const Words& words);
  Result<void> parse_letters(const Words& words);
  Result<void> take_value(const Option& option, const Words& words);
  // `name`: without its value.
  tl::unexpected<Error> no_such_option(const std::string& word, std::string_view name) const;

  std::vector<Option> options_;
  std::string command_;
  std::size_t at_ = 0;
};

// Values that several commands take.
Result<std::optional<SizeSpec>> size_of(const char* option, const std::optional<std::string>& text);
Result<std::optional<int>> number_of(const char* option, const std::optional<std::string>& text,
                                     int most);
Result<std::optional<std::chrono::seconds>> time_of(const char* option,
                                                    const std::optional<std::string>& text);
Result<LeaseId> lease_of(const std::string& text);
// "0,1" and repeated options alike.
Result<Words> split_ids(const Words& given);

}  // namespace gpurota::cli
