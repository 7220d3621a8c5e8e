// One TOML text as plain values that know their lines: a part of a configuration, a file of jobs, a
// user's own defaults. Pure. Nothing else sees TOML.
#pragma once

#include "config/loaded.h"

#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::config {

struct Member;

struct Value {
  enum class Kind { kText, kNumber, kFlag, kList, kTable, kOther };

  Kind kind = Kind::kOther;
  int line = 0;
  std::string text;
  std::int64_t number = 0;
  bool flag = false;
  std::vector<Value> list;
  std::vector<Member> table;

  bool is(Kind other) const { return kind == other; }
  // Of a table; null: it has none.
  const Value* find(std::string_view key) const;
};

struct Member {
  std::string key;
  Value value;
};

// "'8 G'", "8", "true", "a list": for a message.
std::string quoted(const Value& value);

// A table, or what is wrong with its form. The library stops at the first such mistake.
tl::expected<Value, Problem> parse_document(const Text& text);

}  // namespace gpurota::config
