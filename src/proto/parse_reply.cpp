#include "proto/codec.h"
#include "proto/decoder_internal.h"

namespace gpurota::proto {
namespace {

WireError malformed(const std::string& what) {
  return {.name = std::string(kMalformed),
          .message = "the daemon's answer cannot be understood: " + what,
          .subject = {}};
}

// The parameters of an error, as far as they have the right types.
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
  if (const auto found = parameters->find("wait_reason"); found != parameters->end()) {
    Reason reason;
    if (decoder.read(*found, reason, "wait_reason")) error.wait_reason = std::move(reason);
  }
  return error;
}

}  // namespace

template <class Method>
tl::expected<Answer<Method>, WireError> parse_reply(std::string_view text) {
  const auto json = parse_object(text, kMaxReplyBytes);
  if (!json) return tl::unexpected(malformed(json.error()));
  const auto parameters = json->find("parameters");
  if (const auto error = json->find("error"); error != json->end()) {
    return tl::unexpected(read_error(*error, parameters == json->end() ? nullptr : &*parameters));
  }
  const auto continues = read_flag(*json, "continues");
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

#define GPUROTA_INSTANTIATE_PARSER(M) \
  template tl::expected<Answer<M>, WireError> parse_reply<M>(std::string_view);
GPUROTA_FOR_EACH_METHOD(GPUROTA_INSTANTIATE_PARSER)

}  // namespace gpurota::proto
