// The API server's JSON without exceptions: a missing value, or one of another type, counts as
// absent.
#pragma once

#include "base/text.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace gpurota::kube {

using Json = nlohmann::json;

// Null if `text` is not JSON.
inline Json parse_json(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json() : json;
}
// The member `key`; null if there is none.
inline const Json& at(const Json& json, const char* key) {
  static const Json kNull;
  if (!json.is_object()) return kNull;
  const auto found = json.find(key);
  return found == json.end() ? kNull : *found;
}
// Empty if the member is not a string.
inline std::string text_at(const Json& json, const char* key) {
  const Json& found = at(json, key);
  return found.is_string() ? found.get<std::string>() : std::string();
}
// An empty list if the member is not a list.
inline const Json& list_at(const Json& json, const char* key) {
  static const Json kEmpty = Json::array();
  const Json& found = at(json, key);
  return found.is_array() ? found : kEmpty;
}

// The beginning of untrusted text, as valid UTF-8: at most `most` bytes, never cut inside a
// character.
inline std::string text_of(std::string_view foreign, std::size_t most) {
  std::string text = valid_utf8(foreign);
  if (text.size() <= most) return text;
  const auto is_inside = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  while (most > 0 && is_inside(most)) --most;
  text.resize(most);
  return text;
}

}  // namespace gpurota::kube
