// Makes the JSON that the web page reads: an object, field by field in the order of the calls. Used
// by page_json.cpp and history_json.cpp. Pure. The text is valid UTF-8 without a newline, so that
// it fits one line of an event stream.
#pragma once

#include "base/bytes.h"
#include "core/time.h"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace gpurota::web {

// A value that is already JSON.
struct Json {
  std::string text;
};

// Foreign text: replaces invalid UTF-8 and characters that could control a terminal (base/text.h),
// and escapes '<', '>' and '&'.
Json json_text(std::string_view foreign);

inline Json to_json(Json value) { return value; }
inline Json to_json(bool flag) { return {flag ? "true" : "false"}; }
template <std::integral T>
requires(!std::same_as<T, bool>) Json to_json(T number) { return {std::to_string(number)}; }
inline Json to_json(Bytes amount) { return {std::to_string(amount.count())}; }
inline Json to_json(const char* text) { return json_text(text); }
inline Json to_json(const std::string& text) { return json_text(text); }
Json to_json(WallTime time);
template <class T>
Json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : Json{"null"};
}

class JsonObject {
 public:
  template <class T>
  JsonObject& add(const char* name, const T& value) {
    text_ += text_.size() > 1 ? ",\"" : "\"";
    text_ += name;
    text_ += "\":";
    text_ += to_json(value).text;
    return *this;
  }
  Json take() { return {text_ + "}"}; }

 private:
  std::string text_ = "{";
};

// A list with one value for each of `items`, made by `make`.
template <class Items, class Make>
Json json_array(const Items& items, Make make) {
  std::string text = "[";
  for (const auto& item : items) {
    if (text.size() > 1) text += ',';
    text += to_json(make(item)).text;
  }
  return {text + "]"};
}

}  // namespace gpurota::web
