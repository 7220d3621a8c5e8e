#include "config/document.h"

#include "base/text.h"
#include "config/syntax.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/impl/preprocessor.h>
// toml++ 3.3 asserts that a key begins with a valid character, even for "[.a]", before its parser
// returns an error. Without assertions toml++ lets some compilers assume that the condition is
// always true. Turn off assertions and assumptions: in every build the parser must find the error.
#undef TOML_ASSERT
#undef TOML_ASSUME
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_ASSUME(...) static_assert(true)
#define TOML_ASSERT_ASSUME(condition) static_assert(true)
// Outside of strings, toml++ looks up whether letters such as U+031E are blanks, but its table has
// no entry for these letters: the answer must be no.
#pragma push_macro("TOML_UNREACHABLE")
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/forward_declarations.h>
#include <toml++/impl/unicode.h>
#pragma pop_macro("TOML_UNREACHABLE")
#include <toml++/toml.h>

namespace gpurota::config {
namespace {

// Each part of a dotted key (a.a.a…) becomes a nested table. The limit keeps nested tables from
// overflowing the stack.
constexpr std::size_t kLongestLine = 16384;
// No setting is nested deeper.
constexpr int kDeepest = 16;

Value value_of(const toml::node& node, int depth) {
  Value value;
  value.line = static_cast<int>(node.source().begin.line);
  if (const auto* text = node.as_string()) {
    value.kind = Value::Kind::kText;
    value.text = text->get();
  } else if (const auto* number = node.as_integer()) {
    value.kind = Value::Kind::kNumber;
    value.number = number->get();
  } else if (const auto* flag = node.as_boolean()) {
    value.kind = Value::Kind::kFlag;
    value.flag = flag->get();
  } else if (const auto* fraction = node.as_floating_point()) {
    value.text = fmt::format("{}", fraction->get());
  } else if (const auto* list = node.as_array(); list && depth < kDeepest) {
    value.kind = Value::Kind::kList;
    for (const toml::node& each : *list) value.list.push_back(value_of(each, depth + 1));
  } else if (const auto* table = node.as_table(); table && depth < kDeepest) {
    value.kind = Value::Kind::kTable;
    for (const auto& [key, each] : *table) {
      value.table.push_back({std::string(key.str()), value_of(each, depth + 1)});
    }
  }
  return value;
}

// The first line that is too long; 0: none.
int too_long_line(std::string_view text) {
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > kLongestLine) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const Member& member : table) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

std::string quoted(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kText:
      return fmt::format("'{}'", display_text(value.text, 40));
    case Value::Kind::kNumber:
      return fmt::format("{}", value.number);
    case Value::Kind::kFlag:
      return value.flag ? "true" : "false";
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kTable:
      return "a section";
    case Value::Kind::kOther:
      break;
  }
  return value.text.empty() ? "this" : value.text;
}

tl::expected<Value, Problem> parse_document(const Text& text) {
  if (const int line = too_long_line(text.text); line > 0) {
    return tl::unexpected(Problem{{text.file, line}, {}, "the line is longer than 16 KiB"});
  }
  const toml::parse_result parsed = toml::parse(std::string_view(text.text));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    const int line = static_cast<int>(error.source().begin.line);
    Problem problem = explain_syntax(text.text, line, error.description());
    problem.place.file = text.file;
    return tl::unexpected(std::move(problem));
  }
  return value_of(parsed.table(), 0);
}

}  // namespace gpurota::config
