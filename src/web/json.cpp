#include "web/json.h"

#include "base/text.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

namespace gpurota::web {

Json json_text(std::string_view foreign) {
  constexpr std::size_t kLongest = 400;
  std::string out = "\"";
  for (const char c : display_text(foreign, kLongest)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '<' || c == '>' || c == '&' || static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return {out + "\""};
}

Json to_json(WallTime time) { return json_text(proto::format_time(time)); }

}  // namespace gpurota::web
