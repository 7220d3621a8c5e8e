#include "proto/codec.h"
#include "proto/decoder_internal.h"

namespace gpurota::proto {
namespace {

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

// Nothing: it is not a string, or is too long.
std::optional<std::string> read_session(const Json& message) {
  const auto found = message.find("session");
  if (found == message.end() || found->is_null()) return std::string();
  if (!found->is_string()) return std::nullopt;
  const auto& token = found->get_ref<const std::string&>();
  return token.size() > kMaxSessionBytes ? std::nullopt : std::optional(token);
}

template <class Method>
tl::expected<Params, WireError> decode_params(const Json& json) {
  Method params;
  Decoder decoder(Misfits::kRefused);
  if (!decoder.read(json, params, "")) {
    return tl::unexpected(
        standard_error(kInvalidParameter, decoder.bad().empty() ? "parameters" : decoder.bad()));
  }
  if (const std::string_view field = breaks_limit(params); !field.empty()) {
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

}  // namespace

tl::expected<Call, BadCall> parse_call(std::string_view text) {
  const auto json = parse_object(text, kMaxCallBytes);
  if (!json) return tl::unexpected(BadCall{not_a_call(json.error())});
  const auto method = json->find("method");
  if (method == json->end() || !method->is_string()) {
    return tl::unexpected(BadCall{not_a_call("it has no method")});
  }
  const auto more = read_flag(*json, "more"), oneway = read_flag(*json, "oneway");
  const auto upgrade = read_flag(*json, "upgrade");
  if (!oneway) return tl::unexpected(BadCall{standard_error(kInvalidParameter, "oneway")});
  if (!more) return tl::unexpected(BadCall{standard_error(kInvalidParameter, "more"), *oneway});
  if (!upgrade || *upgrade) {
    return tl::unexpected(BadCall{standard_error(kInvalidParameter, "upgrade"), *oneway});
  }
  auto session = read_session(*json);
  if (!session)
    return tl::unexpected(BadCall{standard_error(kInvalidParameter, "session"), *oneway});
  const auto found = json->find("parameters");
  const Json none = Json::object();
  const bool absent = found == json->end() || found->is_null();
  auto params = decode_call(method->get_ref<const std::string&>(), absent ? none : *found);
  if (!params) return tl::unexpected(BadCall{std::move(params.error()), *oneway});
  return Call{std::move(*params), *more, *oneway, std::move(*session)};
}

}  // namespace gpurota::proto
