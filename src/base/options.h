// The options of a command line as rows: what each is called, where its value goes and what --help
// says of it. Every program and every command of gpurota reads its options by this. Pure.
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
  // Reads a value that is not stored as it is. kInvalid: a sentence for people.
  using Take = std::function<Result<void>(const std::string& value)>;

  char letter;            // '\0': none
  std::string_view name;  // "--memory"
  // The place of the value, which outlives the option; a bool: the option has no value.
  std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*, Take>
      to;
  std::string_view value{};  // what help calls its value: "SIZE"
  std::string_view help{};   // in lines; empty: the help of the next row is that of both
  std::string_view words{};  // the values that it may have, between spaces; empty: any

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

// How the words of a command line are read.
struct OptionRules {
  std::string help;            // the command that explains the options: "gpurota run --help"
  bool stop_at_word = false;   // the first word that is no option ends them
  bool abbreviations = false;  // the beginning of one name alone stands for it
  // For an option that there is not; `name`: without its value. Empty: no_such_option().
  std::function<tl::unexpected<Error>(const std::string& word, std::string_view name)> refuse{};
};

// Sets the options, and returns the words that are neither an option nor its value: the first such
// word and all behind it if rules.stop_at_word, else each. "-vm8G", "-m 8G", "--memory 8G" and
// "--memory=8G" are taken; a value that is spelled as an option is taken only behind "=". kInvalid:
// a sentence for people.
Result<std::vector<std::string>> read_options(const std::vector<Option>& options,
                                              const OptionRules& rules,
                                              const std::vector<std::string>& words);

std::vector<std::string_view> option_names(const std::vector<Option>& options);

// "there is no option '--memry': did you mean --memory? (see 'gpurota run --help')"
tl::unexpected<Error> no_such_option(const std::string& word,
                                     const std::vector<std::string_view>& meant,
                                     const std::string& help);

// A program that has options and nothing else.
struct Program {
  std::string_view name;           // "gpurotad"
  std::string_view version;        // empty: it has no --version
  std::string_view before, after;  // what --help says before and after the options
};

// Reads its options, --help and --version. Not empty: what to print, and be done. kInvalid: what is
// wrong.
Result<std::string> read_program_options(const Program& program, std::vector<Option> options,
                                         const std::vector<std::string>& words);

}  // namespace gpurota
