// Text on its way to a terminal: for any input, the output is one harmless line of valid UTF-8
// within its limit.
#include "base/bytes.h"
#include "base/text.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool has_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) return true;
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) return true;
  }
  return false;
}

std::size_t code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

void check_display(std::string_view input, std::size_t columns) {
  const std::string shown = gpurota::display_text(input, columns);
  require(!has_control(shown));
  require(gpurota::valid_utf8(shown) == shown);
  require(code_points(shown) <= columns);
  require(gpurota::display_width(shown) <= 2 * columns);
  require(gpurota::display_text(shown, columns) == shown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_display(input, 200);
  check_display(input, size % 7);
  require(gpurota::valid_utf8(gpurota::valid_utf8(input)) == gpurota::valid_utf8(input));
  const std::size_t middle = size / 2;
  const std::vector<std::string> argv = {std::string(input.substr(0, middle)),
                                         std::string(input.substr(middle))};
  require(!has_control(gpurota::display_command(argv, 80)));
  if (const auto spec = gpurota::parse_size_spec(input)) {
    require(spec->percent > 0 || !spec->bytes.is_zero());
  }
  return 0;
}
