// Writes the structs of the protocol as JSON text, in one pass and without building a tree: for
// answers, of which a busy daemon makes thousands a second. Used only by encode.cpp; any thread.
//
// The text is the same as nlohmann-json's: UTF-8 unchanged, each invalid byte as U+FFFD, no spaces.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/text.h"
#include "core/time.h"
#include "proto/fields.h"
#include "proto/text_forms.h"
#include "proto/words.h"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpurota::proto {

class JsonWriter {
 public:
  std::string take() { return std::move(out_); }
  void raw(std::string_view text) { out_ += text; }

  void value(bool flag) { out_ += flag ? "true" : "false"; }
  // A number above INT64_MAX is written as INT64_MAX, the largest that readers can hold.
  template <std::integral T>
  requires(!std::same_as<T, bool>) void value(T number) {
    if (std::cmp_greater(number, INT64_MAX)) return value(INT64_MAX);
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out_.append(digits, end);
  }
  void value(const std::string& text) { quoted(text); }
  void value(Bytes amount) {
    value(static_cast<std::int64_t>(amount.count() > INT64_MAX ? INT64_MAX : amount.count()));
  }
  void value(LeaseId id) { quoted(to_string(id)); }
  void value(RequestId id) { quoted(to_string(id)); }
  void value(const GpuUuid& uuid) { quoted(uuid.value); }
  void value(WallTime time) { quoted(format_time(time)); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void value(Enum word) { quoted(word_of(word)); }
  void value(const SizeSpec& size) {
    out_ += size.percent > 0 ? "{\"percent\":" : "{\"bytes\":";
    if (size.percent > 0) {
      value(size.percent);
    } else {
      value(size.bytes);
    }
    out_ += '}';
  }
  template <class T>
  void value(const std::vector<T>& items) {
    out_ += '[';
    const char* separator = "";
    for (const T& item : items) {
      out_ += separator;
      value(item);
      separator = ",";
    }
    out_ += ']';
  }
  template <class T>
  requires std::is_class_v<T>
  void value(const T& object) {
    out_ += '{';
    visit(Fields{*this}, object);
    out_ += '}';
  }

 private:
  struct Fields {
    JsonWriter& writer;
    bool first = true;

    template <class T>
    void operator()(const char* name, const T& field) {
      begin(name);
      writer.value(field);
    }
    template <class T>
    void operator()(const char* name, const std::optional<T>& field) {
      begin(name);
      if (field) {
        writer.value(*field);
      } else {
        writer.out_ += "null";
      }
    }
    // Field names are ours: nothing in them needs escaping.
    void begin(const char* name) {
      if (!first) writer.out_ += ',';
      first = false;
      writer.out_ += '"';
      writer.out_ += name;
      writer.out_ += "\":";
    }
  };

  static bool is_plain(char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
  }
  void quoted(std::string_view text) {
    out_ += '"';
    bool ascii = true;
    for (const char c : text) ascii &= is_plain(c) && static_cast<unsigned char>(c) < 0x80;
    if (ascii) {
      out_ += text;
    } else {
      for (const char c : valid_utf8(text)) escape(c);
    }
    out_ += '"';
  }
  void escape(char c) {
    if (is_plain(c)) {
      out_ += c;
      return;
    }
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    out_ += '\\';
    if (const auto at = kShort.find(c); at != kShort.npos) {
      out_ += kLetters[at];
      return;
    }
    constexpr std::string_view kHex = "0123456789abcdef";
    out_ += "u00";
    out_ += kHex[static_cast<unsigned char>(c) >> 4];
    out_ += kHex[static_cast<unsigned char>(c) & 15];
  }

  std::string out_;
};

}  // namespace gpurota::proto
