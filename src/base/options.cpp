#include "base/options.h"

#include "base/nearest.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota {
namespace {

using Words = std::vector<std::string>;

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

// Reads the words in order.
class Reader {
 public:
  Reader(const std::vector<Option>& options, const OptionRules& rules, const Words& words)
      : options_(options), rules_(rules), words_(words) {}

  Result<Words> read() {
    Words rest;
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word.size() < 2 || word.front() != '-') {
        rest.push_back(word);
        if (!rules_.stop_at_word) continue;
        rest.insert(rest.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                    words_.end());
        break;
      }
      GPUROTA_TRY(word[1] == '-' ? read_name(word) : read_letters(word));
    }
    return rest;
  }

 private:
  const Option* find(std::string_view name) const {
    const Option* begun = nullptr;
    int count = 0;
    for (const Option& option : options_) {
      if (option.name == name) return &option;
      if (!option.name.starts_with(name)) continue;
      begun = &option;
      ++count;
    }
    return rules_.abbreviations && count == 1 ? begun : nullptr;
  }

  Result<void> read_name(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Option* const option = find(name);
    const bool has_value = equals != std::string::npos;
    if (option == nullptr || (has_value && !option->takes_value())) return refuse(word, name);
    return has_value ? option->set(word.substr(equals + 1)) : take_value(*option);
  }

  // "-v", "-m8G", "-vm 8G".
  Result<void> read_letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const auto option = std::find_if(options_.begin(), options_.end(),
                                       [&](const Option& o) { return o.letter == word[i]; });
      if (option == options_.end()) return refuse(word, std::string{'-', word[i]});
      if (option->takes_value() && i + 1 < word.size()) return option->set(word.substr(i + 1));
      GPUROTA_TRY(take_value(*option));
    }
    return {};
  }

  Result<void> take_value(const Option& option) {
    // A value that looks like an option must be written after "=".
    const auto is_option = [this](const std::string& word) {
      return std::any_of(options_.begin(), options_.end(), [&](const Option& o) {
        return o.name == std::string_view(word).substr(0, word.find('='));
      });
    };
    if (!option.takes_value()) return option.set("");
    if (at_ + 1 < words_.size() && !is_option(words_[at_ + 1])) return option.set(words_[++at_]);
    return fail(Code::kInvalid,
                fmt::format("{} needs a value (see '{}')", option.name, rules_.help));
  }

  tl::unexpected<Error> refuse(const std::string& word, std::string_view name) const {
    if (rules_.refuse) return rules_.refuse(word, name);
    return no_such_option(word, meant_names(name, option_names(options_)), rules_.help);
  }

  const std::vector<Option>& options_;
  const OptionRules& rules_;
  const Words& words_;
  std::size_t at_ = 0;
};

// The text of --help for the options: names, and descriptions that begin at a fixed column.
std::string options_text(const std::vector<Option>& options) {
  constexpr std::size_t kColumn = 26;
  const std::string indent(kColumn, ' ');
  std::string text, called;
  for (const Option& option : options) {
    called += called.empty() ? "  " : ", ";
    if (option.letter != '\0') called += fmt::format("-{}, ", option.letter);
    called.append(option.name).append(option.value.empty() ? "" : " ").append(option.value);
    if (option.help.empty()) continue;
    const std::size_t width = display_width(called);
    text += called + (width + 2 > kColumn ? "\n" + indent : std::string(kColumn - width, ' '));
    for (const char c : option.help) text += c == '\n' ? "\n" + indent : std::string(1, c);
    text += '\n';
    called.clear();
  }
  return called.empty() ? text : text + called + "\n";
}

}  // namespace

Result<void> Option::set(const std::string& given) const {
  GPUROTA_TRY(check_word(*this, given));
  if (const Take* const take = std::get_if<Take>(&to)) return (*take)(given);
  if (bool* const on = flag()) *on = true;
  if (auto* const one = pointer<std::string>()) *one = given;
  if (auto* const one = text()) *one = given;
  if (auto* const many = texts()) many->push_back(given);
  return {};
}

Result<Words> read_options(const std::vector<Option>& options, const OptionRules& rules,
                           const Words& words) {
  return Reader(options, rules, words).read();
}

std::vector<std::string_view> option_names(const std::vector<Option>& options) {
  std::vector<std::string_view> names;
  for (const Option& option : options) {
    if (std::find(names.begin(), names.end(), option.name) == names.end()) {
      names.push_back(option.name);
    }
  }
  return names;
}

tl::unexpected<Error> no_such_option(const std::string& word,
                                     const std::vector<std::string_view>& meant,
                                     const std::string& help) {
  return fail(Code::kInvalid, fmt::format("there is no option '{}'{} (see '{}')",
                                          display_text(word, 60), did_you_mean(meant, ""), help));
}

Result<std::string> read_program_options(const Program& program, std::vector<Option> options,
                                         const Words& words) {
  bool help = false, version = false;
  options.push_back({'h', "--help", &help});
  if (!program.version.empty()) options.push_back({'V', "--version", &version});
  const OptionRules rules{fmt::format("{} --help", program.name), false, true};
  GPUROTA_ASSIGN_OR_RETURN(const Words rest, read_options(options, rules, words));
  if (!rest.empty()) {
    return fail(Code::kInvalid, fmt::format("unexpected argument '{}' (see '{}')",
                                            display_text(rest.front(), 60), rules.help));
  }
  if (help) return fmt::format("{}{}{}", program.before, options_text(options), program.after);
  if (version) return fmt::format("{} {}\n", program.name, program.version);
  return std::string();
}

}  // namespace gpurota
