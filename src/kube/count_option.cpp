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

Result<Bytes> parse_memory_unit(std::string_view text) {
  GPUROTA_ASSIGN_OR_RETURN(const Bytes unit, parse_bytes(text));
  if (unit >= mib(64)) return unit;
  return fail(Code::kInvalid, "--memory-unit is at least 64MiB");
}

}  // namespace gpurota::kube
