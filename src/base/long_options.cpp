#include "base/long_options.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota {

Result<void> read_long_options(
    int argc, char* const* argv, const option* known, const char* program,
    const std::function<Result<void>(int option, const char* value)>& take) {
  constexpr std::size_t kShown = 60;
  optind = 1;
  opterr = 0;
  const auto next = [&] { return getopt_long(argc, argv, ":hV", known, nullptr); };
  int index = optind;
  for (int c = next(); c != -1; index = optind, c = next()) {
    if (c == ':') {
      return fail(Code::kInvalid, fmt::format("{} needs a value, see {} --help",
                                              display_text(argv[index], kShown), program));
    }
    if (c == '?') {
      return fail(Code::kInvalid, fmt::format("there is no option {}, see {} --help",
                                              display_text(argv[index], kShown), program));
    }
    GPUROTA_TRY(take(c, optarg));
  }
  if (optind == argc) return {};
  return fail(Code::kInvalid, fmt::format("unexpected argument {}, see {} --help",
                                          display_text(argv[optind], kShown), program));
}

}  // namespace gpurota
