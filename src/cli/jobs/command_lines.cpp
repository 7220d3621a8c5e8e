#include "cli/jobs/command_lines.h"

#include "base/text.h"

#include <fmt/format.h>

#include <optional>

namespace gpurota::cli {
namespace {

using Strings = std::vector<std::string>;

tl::unexpected<Error> for_a_shell(char c) {
  return fail(Code::kInvalid,
              fmt::format("'{}' means something to a shell, and none reads this line: quote it, or "
                          "write the line as sh -c '…'",
                          c));
}

// The words of one line.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}

  Result<Strings> words() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#' && !word_) break;
      if (c == ' ' || c == '\t' || c == '\r') {
        end_word();
      } else if (c == '\'' || c == '"') {
        GPUROTA_TRY(quoted(c));
      } else if (c == '\\') {
        if (++at_ == text_.size()) {
          return fail(Code::kInvalid,
                      "a backslash at the end of a line joins it with no other: "
                      "write each command on one line");
        }
        add(text_[at_]);
      } else if (std::string_view("|&;<>()$`*?").find(c) != std::string_view::npos) {
        return for_a_shell(c);
      } else {
        add(c);
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  void add(char c) {
    if (!word_) word_.emplace();
    *word_ += c;
  }
  void end_word() {
    if (word_) words_.push_back(std::move(*word_));
    word_.reset();
  }
  Result<void> quoted(char quote) {
    if (!word_) word_.emplace();
    for (++at_; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == quote) return {};
      const bool in_double = quote == '"';
      if (in_double && (c == '$' || c == '`')) return for_a_shell(c);
      const bool escapes =
          in_double && c == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\"\\$`").find(text_[at_ + 1]) != std::string_view::npos;
      if (escapes) c = text_[++at_];
      add(c);
    }
    return fail(Code::kInvalid, fmt::format("a {} is not closed on this line", quote));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<std::string> word_;
  Strings words_;
};

}  // namespace

Result<std::vector<proto::ItemCommand>> parse_command_lines(std::string_view text,
                                                            const std::string& file) {
  std::vector<proto::ItemCommand> commands;
  const std::string name = display_text(file, 200);
  int number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find('\0') != std::string_view::npos) {
      return fail(Code::kInvalid, fmt::format("{}:{}: it contains a NUL byte", name, number));
    }
    auto words = Line(line).words();
    if (!words) {
      return fail(Code::kInvalid, fmt::format("{}:{}: {}", name, number, words.error().message));
    }
    if (words->empty()) continue;
    if (words->front().empty()) {
      return fail(Code::kInvalid, fmt::format("{}:{}: the command has no name", name, number));
    }
    commands.push_back({std::move(*words)});
  }
  if (!commands.empty()) return commands;
  return fail(Code::kInvalid, fmt::format("{} has no commands: write one on each line", name));
}

}  // namespace gpurota::cli
