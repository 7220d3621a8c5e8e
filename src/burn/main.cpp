// gpurota-burn: what `gpurota burn` executes, so that the CLI itself never touches a GPU.
#include "base/standard_streams.h"
#include "base/text.h"
#include "burn/burn.h"
#include "burn/report.h"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace gpurota;
  occupy_closed_streams();
  const auto options =
      burn::parse_options(std::vector<std::string>(argv + (argc > 0), argv + argc));
  if (!options) {
    (void)std::fprintf(stderr, "gpurota burn: %s\n",
                       display_text(options.error().message, 600).c_str());
    return burn::kExitUsage;
  }
  if (!options->print.empty()) {
    return std::fputs(options->print.c_str(), stdout) < 0 ? burn::kExitFailed : burn::kExitFine;
  }
  return burn::burn(*options);
}
