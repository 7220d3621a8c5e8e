#include "kube/count_option.h"

#include "base/text.h"

#include <fmt/format.h>

#include <charconv>

namespace gpurota::kube {

Result<int> parse_count(const char* option, std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= least && value <= most) return value;
  return fail(Code::kInvalid, fmt::format("{} '{}' is not a number from {} to {}", option,
                                          display_text(text, 60), least, most));
}

}  // namespace gpurota::kube
