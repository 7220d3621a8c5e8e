// The options of a command line as rows: name, place of the value, and description for --help.
// Every program and every command of gpurota reads its options with this. Pure.
#pragma once

#include "base/result.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpurota {

struct Option {
  // Parses a value that is not stored as it is. kInvalid: a sentence for people.
  using Take = std::function<Result<void>(const std::string& value)>;

  char letter;            // '\0': none
  std::string_view name;  // "--memory"
  // Where the value is stored; must outlive the option. bool: the option takes no value.
  std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*, Take>
      to;
  std::string_view value{};  // name of the value in the help: "SIZE"
  std::string_view help{};   // may have several lines; empty: shares the help of the next row
  std::string_view words{};  // allowed values, separated by spaces; empty: any

  bool takes_value() const { return flag() == nullptr; }
  bool* flag() const { return pointer<bool>(); }
  std::optional<std::string>* text() const { return pointer<std::optional<std::string>>(); }
  std::vector<std::string>* texts() const { return pointer<std::vector<std::string>>(); }
  // kInvalid: the value is not one of `words`, or Take refuses it.
  Result<void> set(const std::string& given) const;

 private:
  template <class T>
  T* pointer() const {
    T* const* const at = std::get_if<T*>(&to);
    return at != nullptr ? *at : nullptr;
  }
};

// Rules for reading the words of a command line.
struct OptionRules {
  std::string help;            // the command that explains the options: "gpurota run --help"
  bool stop_at_word = false;   // the first word that is not an option ends them
  bool abbreviations = false;  // an unambiguous beginning of a name stands for the name
  // Makes the error for an unknown option; `name` is the word without its value. Empty:
  // no_such_option().
  std::function<tl::unexpected<Error>(const std::string& word, std::string_view name)> refuse{};
};

// Sets the options. Returns the words that are neither an option nor its value; with
// rules.stop_at_word, the first such word and all words after it. Accepts "-vm8G", "-m 8G",
// "--memory 8G" and "--memory=8G"; a value that looks like an option is accepted only after "=".
// kInvalid: a sentence for people.
Result<std::vector<std::string>> read_options(const std::vector<Option>& options,
                                              const OptionRules& rules,
                                              const std::vector<std::string>& words);

std::vector<std::string_view> option_names(const std::vector<Option>& options);

// "there is no option '--memry': did you mean --memory? (see 'gpurota run --help')"
tl::unexpected<Error> no_such_option(const std::string& word,
                                     const std::vector<std::string_view>& meant,
                                     const std::string& help);

// A program that takes only options.
struct Program {
  std::string_view name;           // "gpurotad"
  std::string_view version;        // empty: no --version
  std::string_view before, after;  // text of --help before and after the options
};

// Reads the program's options, --help and --version. Not empty: print the result and exit.
// kInvalid: what is wrong.
Result<std::string> read_program_options(const Program& program, std::vector<Option> options,
                                         const std::vector<std::string>& words);

}  // namespace gpurota
