// Reads the structs of the protocol from JSON, for parse_call.cpp and parse_reply.cpp. Any thread.
#pragma once

#include "proto/fields.h"
#include "proto/text_forms.h"
#include "proto/words.h"

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpurota::proto {

using Json = nlohmann::json;

// A message of at most `max` bytes as an object; or why it is not one.
tl::expected<Json, std::string> parse_object(std::string_view text, std::size_t max);

// false if it is absent or null; nothing if it is not a boolean.
std::optional<bool> read_flag(const Json& message, const char* name);

// The treatment of a number that does not fit its field. A call with one is refused. An answer is
// not lost: the number becomes the nearest that fits, and an optional field that cannot be read is
// left out.
enum class Misfits { kRefused, kClamped };

// Fills structs from an object. Stops at the first field that is wrong; `bad` names it
// ("memory.percent", "gpu_ids[3]").
class Decoder {
 public:
  explicit Decoder(Misfits misfits) : misfits_(misfits) {}
  const std::string& bad() const { return bad_; }

  template <class T>
  requires std::is_class_v<T>
  bool read(const Json& json, T& out, const std::string& path) {
    if (!json.is_object()) return refuse(path);
    Fields fields{*this, json, path, true};
    visit(fields, out);
    return fields.ok;
  }
  bool read(const Json& json, bool& out, const std::string& path) {
    if (!json.is_boolean()) return refuse(path);
    out = json.get<bool>();
    return true;
  }
  template <std::integral T>
  bool read(const Json& json, T& out, const std::string& path) {
    std::int64_t number = 0;
    if (!integer(json, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), number)) {
      return refuse(path);
    }
    out = static_cast<T>(number);
    return true;
  }
  bool read(const Json& json, Bytes& out, const std::string& path) {
    std::int64_t number = 0;
    if (!integer(json, 0, INT64_MAX, number)) return refuse(path);
    out = Bytes(static_cast<std::uint64_t>(number));
    return true;
  }
  bool read(const Json& json, std::string& out, const std::string& path) {
    if (!json.is_string()) return refuse(path);
    out = json.get_ref<const std::string&>();
    return true;
  }
  bool read(const Json& json, GpuUuid& out, const std::string& path) {
    return read(json, out.value, path);
  }
  bool read(const Json& json, LeaseId& out, const std::string& path) {
    return read_form(json, out, path, parse_lease_id);
  }
  bool read(const Json& json, RequestId& out, const std::string& path) {
    return read_form(json, out, path, parse_request_id);
  }
  bool read(const Json& json, WallTime& out, const std::string& path) {
    return read_form(json, out, path, parse_time);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  bool read(const Json& json, Enum& out, const std::string& path) {
    if (!json.is_string()) return refuse(path);
    out = enum_of<Enum>(json.get_ref<const std::string&>());
    return true;
  }
  bool read(const Json& json, SizeSpec& out, const std::string& path) {
    if (!json.is_object()) return refuse(path);
    const auto bytes = json.find("bytes"), percent = json.find("percent");
    const bool has_bytes = bytes != json.end() && !bytes->is_null();
    const bool has_percent = percent != json.end() && !percent->is_null();
    if (has_bytes == has_percent) return refuse(path);
    std::int64_t number = 0;
    if (has_percent) {
      if (!integer(*percent, 1, 100, number)) return refuse(path + ".percent");
      out = SizeSpec{Bytes(), static_cast<int>(number)};
      return true;
    }
    if (!integer(*bytes, 1, INT64_MAX, number)) return refuse(path + ".bytes");
    out = SizeSpec{Bytes(static_cast<std::uint64_t>(number)), 0};
    return true;
  }
  template <class T>
  bool read(const Json& json, std::vector<T>& out, const std::string& path) {
    if (!json.is_array()) return refuse(path);
    out.clear();
    out.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) {
      if (!read(json[i], out.emplace_back(), path + "[" + std::to_string(i) + "]")) return false;
    }
    return true;
  }

 private:
  struct Fields {
    Decoder& decoder;
    const Json& object;
    const std::string& path;
    bool ok;

    template <class T>
    void operator()(const char* name, T& field) {
      const auto found = object.find(name);
      if (!ok) return;
      ok = found == object.end() ? decoder.refuse(at(name)) : decoder.read(*found, field, at(name));
    }
    template <class T>
    void operator()(const char* name, std::optional<T>& field) {
      const auto found = object.find(name);
      field.reset();
      if (!ok || found == object.end() || found->is_null()) return;
      if (decoder.read(*found, field.emplace(), at(name))) return;
      ok = decoder.misfits_ == Misfits::kClamped;
      field.reset();
    }
    std::string at(const char* name) const { return path.empty() ? name : path + "." + name; }
  };

  // For text in a form of its own.
  template <class T>
  bool read_form(const Json& json, T& out, const std::string& path,
                 std::optional<T> (*parse)(std::string_view)) {
    const auto value =
        json.is_string() ? parse(json.get_ref<const std::string&>()) : std::optional<T>();
    if (!value) return refuse(path);
    out = *value;
    return true;
  }
  bool refuse(const std::string& path) {
    bad_ = path;
    return false;
  }
  template <class Least, class Most>
  bool integer(const Json& json, Least least, Most most, std::int64_t& out) const {
    if (misfits_ == Misfits::kClamped && json.is_number()) {
      const std::int64_t top =
          std::cmp_less(most, INT64_MAX) ? static_cast<std::int64_t>(most) : INT64_MAX;
      out = nearest(json, static_cast<std::int64_t>(least), top);
      return true;
    }
    if (!json.is_number_integer()) return false;
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return false;
    out = json.get<std::int64_t>();
    return std::cmp_greater_equal(out, least) && std::cmp_less_equal(out, most);
  }
  static std::int64_t nearest(const Json& json, std::int64_t least, std::int64_t most) {
    if (json.is_number_float()) {
      const double number = json.get<double>();
      if (number >= static_cast<double>(most)) return most;
      return number <= static_cast<double>(least) ? least : static_cast<std::int64_t>(number);
    }
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return most;
    return std::clamp(json.get<std::int64_t>(), least, most);
  }

  const Misfits misfits_;
  std::string bad_;
};

}  // namespace gpurota::proto
