#include "core/compute_capability.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace gpurota {

Result<int> parse_compute_capability(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t dot = text.find('.');
  const std::string major(text.substr(0, dot));
  const std::string minor(dot == std::string_view::npos ? "0" : text.substr(dot + 1));
  const bool number = !major.empty() && major.size() <= 2 && minor.size() == 1 &&
                      std::all_of(major.begin(), major.end(), is_digit) && is_digit(minor[0]);
  if (!number) {
    return fail(Code::kInvalid, fmt::format("'{}' is not a compute capability",
                                            display_text(std::string(text), 40)));
  }
  return std::stoi(major) * 10 + (minor[0] - '0');
}

}  // namespace gpurota
