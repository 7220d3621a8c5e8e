#include "config/syntax.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace gpurota::config {
namespace {

using View = std::string_view;

constexpr View kBlanks = " \t\r";

View trimmed(View text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == View::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The lines of a text, beginning with the first.
class Lines {
 public:
  explicit Lines(View text) : rest_(text) {}

  // The next line, whose number line() then returns; nothing: there are no more.
  std::optional<View> next() {
    if (ended_) return std::nullopt;
    const std::size_t end = rest_.find('\n');
    const View line = rest_.substr(0, end);
    ended_ = end == View::npos;
    if (!ended_) rest_.remove_prefix(end + 1);
    ++line_;
    return line;
  }
  int line() const { return line_; }

 private:
  View rest_;
  int line_ = 0;
  bool ended_ = false;
};

View line_at(View text, int line) {
  Lines lines(text);
  for (auto each = lines.next(); each; each = lines.next()) {
    if (lines.line() == line) return *each;
  }
  return {};
}

// The line up to a comment; a '#' within quotes does not begin one.
View without_comment(View line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != '\0') {
      if (line[i] == quote) quote = '\0';
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

// "limits" of "[limits]"; nothing: the line is not a header.
std::optional<View> header_of(View line) {
  line = trimmed(without_comment(line));
  if (!line.starts_with("[") || !line.ends_with("]") || line.starts_with("[[")) return std::nullopt;
  return trimmed(line.substr(1, line.size() - 2));
}

std::optional<View> key_of(View line) {
  const std::size_t equals = line.find('=');
  if (equals == View::npos) return std::nullopt;
  return trimmed(line.substr(0, equals));
}

// The section that `line` is in; empty: none.
View section_at(View text, int line) {
  View section;
  Lines lines(text);
  for (auto each = lines.next(); each && lines.line() < line; each = lines.next()) {
    section = header_of(*each).value_or(section);
  }
  return section;
}

// The earlier line with the same header, or with the same key in the same section; 0: none.
int earlier(View text, int line) {
  const View here = line_at(text, line);
  const auto header = header_of(here);
  const auto key = key_of(here);
  const View section = section_at(text, line);
  View current;
  Lines lines(text);
  for (auto above = lines.next(); above && lines.line() < line; above = lines.next()) {
    const auto header_above = header_of(*above);
    if (header && header_above == header) return lines.line();
    current = header_above.value_or(current);
    if (!header && key && current == section && key_of(*above) == key) return lines.line();
  }
  return 0;
}

std::string shown(View text) { return display_text(text, 60); }

// Explains why a text is not a valid value.
std::string explain_value(View value) {
  constexpr std::array<std::pair<View, View>, 4> kWords = {
      {{"True", "true"}, {"TRUE", "true"}, {"False", "false"}, {"FALSE", "false"}}};
  for (const auto& [word, right] : kWords) {
    if (value == word) return fmt::format("'{}' is written in small letters: {}", word, right);
  }
  if (value == "yes" || value == "no" || value == "on" || value == "off") {
    return fmt::format("'{}' is text, which needs quotes: \"{}\"; or is true or false meant?",
                       value, value);
  }
  for (const View curly : {"“", "”", "„", "‘", "’"}) {
    if (value.find(curly) != View::npos) {
      return "these are typographic quotes: write straight ones, \"…\"";
    }
  }
  const bool quote = value.starts_with("\"") || value.starts_with("'");
  if (quote && (value.size() == 1 || value.back() != value.front())) {
    return fmt::format("the closing quote is missing: {}{}", shown(value), value.front());
  }
  if (value.starts_with("[")) {
    return "a list is written so: [\"alice\", \"bob\"], with quotes and commas";
  }
  const bool number = value.find_first_not_of("0123456789+-._") == View::npos;
  if (quote || number || value.starts_with("{")) return {};
  return fmt::format("text needs quotes: \"{}\"", shown(value));
}

std::string explain_twice(View text, int line) {
  const int before = earlier(text, line);
  const std::string first = before == 0 ? "" : fmt::format(" (first in line {})", before);
  if (const auto header = header_of(line_at(text, line))) {
    return fmt::format("the section [{}] is there twice{}: put its settings together",
                       shown(*header), first);
  }
  return fmt::format("it is set twice{}: leave one of them out", first);
}

std::string explain_header(View line) {
  if (line.ends_with("]")) return {};
  return fmt::format("the closing bracket of the section is missing: {}]", shown(line));
}

std::string explain(View text, int line, View description) {
  if (description.find("utf-8") != View::npos) {
    return "the text is not UTF-8: save the file in that encoding";
  }
  if (description.find("cannot redefine") != View::npos) return explain_twice(text, line);
  const bool unfinished =
      description.find("multi-line") != View::npos || description.find("end-of-file") != View::npos;
  const View here = trimmed(without_comment(line_at(text, line)));
  const bool in_list = description.find("parsing array") != View::npos;
  if (in_list) return "a list is not closed, or lacks a comma: [\"alice\", \"bob\"]";
  if (here.starts_with("[")) return explain_header(here);
  if (unfinished && here.find('=') == View::npos) {
    return "the file ends within a value that begins above: a closing quote or bracket is missing";
  }
  if (description.find("escape sequence") != View::npos) {
    return "a backslash within \"…\" begins a special character: write '…' instead of \"…\"";
  }
  const std::size_t equals = here.find('=');
  if (equals == View::npos) {
    const std::size_t colon = here.find(':');
    if (colon != View::npos) {
      return fmt::format("write '=' instead of ':': {} = …", shown(trimmed(here.substr(0, colon))));
    }
    return here.empty() ? std::string()
                        : fmt::format("'{}' is not a setting: write key = value", shown(here));
  }
  const View value = trimmed(here.substr(equals + 1));
  if (value.empty()) return "the value is missing";
  return description.find("expected '='") == View::npos &&
                 description.find("comment or whitespace") == View::npos
             ? explain_value(value)
             : std::string();
}

std::string key_at(View text, int line) {
  constexpr View kOfKeys = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.\"' ";
  const View here = without_comment(line_at(text, line));
  const auto key = key_of(here);
  if (!key || header_of(here) || key->empty()) return {};
  if (key->find_first_not_of(kOfKeys) != View::npos) return {};
  const View section = section_at(text, line);
  return section.empty() ? std::string(*key) : fmt::format("{}.{}", section, *key);
}

}  // namespace

Problem explain_syntax(std::string_view text, int line, std::string_view description) {
  std::string what = explain(text, line, description);
  if (what.empty()) what = fmt::format("this is not TOML: {}", display_text(description, 200));
  return {{{}, line}, key_at(text, line), std::move(what)};
}

}  // namespace gpurota::config
