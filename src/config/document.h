// A TOML text as plain values with their line numbers: a part of a configuration, a file of jobs, a
// user's own defaults. Pure. No other code uses the TOML library.
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
  // The member of a table with this key; null: none.
  const Value* find(std::string_view key) const;
};

struct Member {
  std::string key;
  Value value;
};

// "'8 G'", "8", "true", "a list": for messages.
std::string quoted(const Value& value);

// The table, or the first mistake in its syntax: the library stops at the first one.
tl::expected<Value, Problem> parse_document(const Text& text);

}  // namespace gpurota::config
