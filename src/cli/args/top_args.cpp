#include "cli/args/top_args.h"

#include "base/text.h"
#include "cli/raw.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {

Result<TopOptions> parse_top(const Raw& raw) {
  TopOptions top{raw.once, 0, 0};
  if (!raw.size) return top;
  const std::size_t cross = std::min(raw.size->find('x'), raw.size->size());
  const auto number = [](const std::string& text) -> std::size_t {
    const bool digits = !text.empty() && text.size() < 5 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t value = digits ? std::stoul(text) : 0;
    return value <= kMostTopSize ? value : 0;
  };
  top.once = true;
  top.width = number(raw.size->substr(0, cross));
  top.height = number(raw.size->substr(std::min(cross + 1, raw.size->size())));
  if (top.width > 0 && top.height > 0) return top;
  return fail(
      Code::kInvalid,
      fmt::format("--size: '{}' is not a size of at most {}x{}: write columns and lines, 80x24",
                  display_text(*raw.size, 40), kMostTopSize, kMostTopSize));
}

}  // namespace gpurota::cli
