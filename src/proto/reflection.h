// Types that the generated words.h and fields.h use.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpurota::proto {

// A T, const or not: what the visit functions of fields.h take.
template <class X, class T>
concept Like = std::same_as<std::remove_const_t<X>, T>;

// kAll: the words of an enum of the protocol, by enumerator; [0] is written for an unknown value.
template <class Enum>
struct Words;

template <class Enum>
constexpr const char* word_of(Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return Words<Enum>::kAll[index < Words<Enum>::kAll.size() ? index : 0];
}

template <class Enum>
constexpr Enum enum_of(std::string_view word) {
  for (std::size_t i = 1; i < Words<Enum>::kAll.size(); ++i) {
    if (Words<Enum>::kAll[i] == word) return static_cast<Enum>(i);
  }
  return static_cast<Enum>(0);
}

// How large a field of a call may be. For a list the bytes are those of its texts, each with a
// terminator.
struct Limit {
  std::size_t least = 0;
  std::size_t items = SIZE_MAX;
  std::size_t bytes = SIZE_MAX;
};

inline bool is_within(const std::string& text, const Limit& limit) {
  return text.size() >= limit.least && text.size() <= limit.bytes;
}
inline bool is_within(const std::vector<std::string>& texts, const Limit& limit) {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size() + 1;
  return texts.size() >= limit.least && texts.size() <= limit.items && bytes <= limit.bytes;
}
template <class T>
bool is_within(const std::optional<T>& field, const Limit& limit) {
  return !field || is_within(*field, limit);
}

}  // namespace gpurota::proto
