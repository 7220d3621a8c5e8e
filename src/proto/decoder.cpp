#include "proto/codec.h"
#include "proto/decoder_internal.h"

namespace gpurota::proto {
namespace {

// Checked before parsing, because the parser itself has no limit of nesting.
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

}  // namespace

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

std::optional<bool> read_flag(const Json& message, const char* name) {
  const auto found = message.find(name);
  if (found == message.end() || found->is_null()) return false;
  if (!found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

}  // namespace gpurota::proto
