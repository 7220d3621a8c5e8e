#include "proto/codec.h"
#include "proto/fields.h"
#include "proto/text_forms.h"
#include "proto/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace gpurota::proto {
namespace {

using Json = nlohmann::json;

// Counted before parsing: the parser itself follows any nesting.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// What becomes of a number that its field has no room for. A call is refused for it. An answer is not lost for it: the
// number is the nearest that fits; and what need not be there and cannot be read is left out.
enum class Misfits { kRefused, kClamped };

// Fills structs from an object. The first field that does not fit ends it; `bad` names it
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
    const auto id = json.is_string() ? parse_lease_id(json.get_ref<const std::string&>())
                                     : std::optional<LeaseId>();
    if (!id) return refuse(path);
    out = *id;
    return true;
  }
  bool read(const Json& json, RequestId& out, const std::string& path) {
    const auto id = json.is_string() ? parse_request_id(json.get_ref<const std::string&>())
                                     : std::optional<RequestId>();
    if (!id) return refuse(path);
    out = *id;
    return true;
  }
  bool read(const Json& json, WallTime& out, const std::string& path) {
    const auto time = json.is_string() ? parse_time(json.get_ref<const std::string&>())
                                       : std::optional<WallTime>();
    if (!time) return refuse(path);
    out = *time;
    return true;
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

// Sizes that the interface text states. Returns the field that breaks one, or "".
const char* oversized_note(const std::optional<std::string>& note) {
  return note && note->size() > kMaxNoteBytes ? "note" : "";
}
template <class Method>
const char* oversized(const Method&) {
  return "";
}
const char* oversized(const Update& update) { return oversized_note(update.note); }
const char* oversized(const Release& release) {
  return release.gpu_ids && release.gpu_ids->size() > kMaxGpuIds ? "gpu_ids" : "";
}
const char* oversized(const Drain& drain) {
  if (drain.gpu_ids.size() > kMaxGpuIds) return "gpu_ids";
  return drain.reason && drain.reason->size() > kMaxNoteBytes ? "reason" : "";
}
const char* oversized(const AddFiller& filler) {
  return filler.gpu_ids && filler.gpu_ids->size() > kMaxGpuIds ? "gpu_ids" : "";
}
const char* oversized(const CheckRequest& request) {
  return request.gpu_ids && request.gpu_ids->size() > kMaxGpuIds ? "gpu_ids" : "";
}
const char* oversized(const SetGpus& set) {
  return set.gpu_ids.size() > kMaxGpuIds ? "gpu_ids" : "";
}
const char* oversized(const ListTurns& turns) {
  return turns.gpu_ids && turns.gpu_ids->size() > kMaxGpuIds ? "gpu_ids" : "";
}
const char* oversized(const UpdateJob& job) { return oversized_note(job.note); }
const char* oversized(const Undrain& undrain) {
  return undrain.gpu_ids.size() > kMaxGpuIds ? "gpu_ids" : "";
}
// Of what asks for a lease.
template <class Asking>
const char* oversized_asking(const Asking& acquire) {
  if (acquire.as_name && acquire.as_name->size() > kMaxNameBytes) return "as_name";
  if (acquire.gpu_ids && acquire.gpu_ids->size() > kMaxGpuIds) return "gpu_ids";
  if (acquire.command) {
    std::size_t bytes = 0;
    for (const std::string& argument : *acquire.command) bytes += argument.size() + 1;
    if (acquire.command->size() > kMaxCommandArguments || bytes > kMaxCommandBytes) {
      return "command";
    }
  }
  return oversized_note(acquire.note);
}
const char* oversized(const Acquire& acquire) { return oversized_asking(acquire); }
const char* oversized(const Enqueue& enqueue) {
  const bool ticket = !enqueue.ticket.empty() && enqueue.ticket.size() <= kMaxNameBytes;
  return ticket ? oversized_asking(enqueue) : "ticket";
}

// Reads a message of at most `max` bytes into an object; says why not.
tl::expected<Json, std::string> parse_object(std::string_view text, std::size_t max) {
  if (text.size() > max) {
    return tl::unexpected("it is longer than " + std::to_string(max) + " bytes");
  }
  if (too_deep(text)) {
    return tl::unexpected("it nests deeper than " + std::to_string(kMaxDepth) + " levels");
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return tl::unexpected(std::string("it is not JSON in UTF-8"));
  if (!json.is_object()) return tl::unexpected(std::string("it is not an object"));
  return json;
}

WireError standard_error(std::string_view name, std::string_view subject) {
  constexpr std::size_t kMaxEcho = 128;  // of what the client sent
  return {.name = std::string(name),
          .message = {},
          .subject = std::string(subject.substr(0, kMaxEcho))};
}

WireError not_a_call(const std::string& why) {
  return {.name = std::string(kInvalidRequest),
          .message = "the message is not a varlink call: " + why,
          .subject = {}};
}

std::optional<bool> flag(const Json& call, const char* name) {
  const auto found = call.find(name);
  if (found == call.end() || found->is_null()) return false;
  if (!found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

template <class Method>
tl::expected<Params, WireError> decode_params(const Json& json) {
  Method params;
  Decoder decoder(Misfits::kRefused);
  if (!decoder.read(json, params, "")) {
    return tl::unexpected(
        standard_error(kInvalidParameter, decoder.bad().empty() ? "parameters" : decoder.bad()));
  }
  if (const char* field = oversized(params); *field != '\0') {
    return tl::unexpected(standard_error(kInvalidParameter, field));
  }
  return Params(std::move(params));
}

tl::expected<Params, WireError> decode_call(const std::string& method, const Json& params) {
#define GPUROTA_DECODE(M) \
  if (method == M::kMethod) return decode_params<M>(params);
  GPUROTA_FOR_EACH_METHOD(GPUROTA_DECODE)
#undef GPUROTA_DECODE
  const std::string_view name = method;
  const std::string_view interface =
      name.substr(0, name.rfind('.') == name.npos ? 0 : name.rfind('.'));
  if (interface == kInterface || interface == kServiceInterface) {
    return tl::unexpected(standard_error(kMethodNotFound, name));
  }
  return tl::unexpected(standard_error(kInterfaceNotFound, interface.empty() ? name : interface));
}

WireError malformed(const std::string& what) {
  return {.name = std::string(kMalformed),
          .message = "the daemon's answer cannot be understood: " + what,
          .subject = {}};
}

// The parameters of an error, as far as they are what they should be.
WireError read_error(const Json& name, const Json* parameters) {
  if (!name.is_string()) return malformed("its 'error' is not a string");
  WireError error{.name = name.get<std::string>(), .message = {}, .subject = {}};
  if (parameters == nullptr || !parameters->is_object()) return error;
  const auto text = [&](const char* key, std::string& out) {
    const auto found = parameters->find(key);
    if (found != parameters->end() && found->is_string()) out = found->get<std::string>();
  };
  text("message", error.message);
  text("interface", error.subject);
  text("method", error.subject);
  text("parameter", error.subject);
  Decoder decoder(Misfits::kClamped);
  for (auto [key, out] : {std::pair{"free", &error.free}, {"total", &error.total}}) {
    const auto found = parameters->find(key);
    if (found != parameters->end()) (void)decoder.read(*found, *out, key);
  }
  return error;
}

}  // namespace

tl::expected<Call, BadCall> parse_call(std::string_view text) {
  const auto json = parse_object(text, kMaxCallBytes);
  if (!json) return tl::unexpected(BadCall{not_a_call(json.error())});
  const auto method = json->find("method");
  if (method == json->end() || !method->is_string()) {
    return tl::unexpected(BadCall{not_a_call("it has no method")});
  }
  const auto more = flag(*json, "more"), oneway = flag(*json, "oneway");
  const auto upgrade = flag(*json, "upgrade");
  if (!oneway) return tl::unexpected(BadCall{standard_error(kInvalidParameter, "oneway")});
  if (!more) return tl::unexpected(BadCall{standard_error(kInvalidParameter, "more"), *oneway});
  if (!upgrade || *upgrade) {
    return tl::unexpected(BadCall{standard_error(kInvalidParameter, "upgrade"), *oneway});
  }
  const auto found = json->find("parameters");
  const Json none = Json::object();
  const bool absent = found == json->end() || found->is_null();
  auto params = decode_call(method->get_ref<const std::string&>(), absent ? none : *found);
  if (!params) return tl::unexpected(BadCall{std::move(params.error()), *oneway});
  return Call{std::move(*params), *more, *oneway};
}

template <class Method>
tl::expected<Answer<Method>, WireError> parse_reply(std::string_view text) {
  const auto json = parse_object(text, kMaxReplyBytes);
  if (!json) return tl::unexpected(malformed(json.error()));
  const auto parameters = json->find("parameters");
  if (const auto error = json->find("error"); error != json->end()) {
    return tl::unexpected(read_error(*error, parameters == json->end() ? nullptr : &*parameters));
  }
  const auto continues = flag(*json, "continues");
  if (!continues) return tl::unexpected(malformed("its 'continues' is not a boolean"));
  Answer<Method> answer{{}, *continues};
  Decoder decoder(Misfits::kClamped);
  const Json none = Json::object();
  const bool absent = parameters == json->end() || parameters->is_null();
  if (!decoder.read(absent ? none : *parameters, answer.reply, "")) {
    return tl::unexpected(malformed(
        decoder.bad().empty() ? "its 'parameters' are not an object"
                              : "'" + decoder.bad() + "' is missing or not what it should be"));
  }
  return answer;
}

#define GPUROTA_INSTANTIATE(M) \
  template tl::expected<Answer<M>, WireError> parse_reply<M>(std::string_view);
GPUROTA_FOR_EACH_METHOD(GPUROTA_INSTANTIATE)

}  // namespace gpurota::proto
