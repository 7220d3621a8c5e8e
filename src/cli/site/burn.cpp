// `gpurota burn` executes gpurota-burn, so that this program never touches a GPU.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run/lookup.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr const char* kProgram = "gpurota-burn";

}  // namespace

int burn(const Context&, const BurnOptions& options) {
  std::vector<char*> argv = {const_cast<char*>(kProgram)};
  for (const std::string& word : options.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string path = beside_us(kProgram);
  if (!path.empty()) (void)::execv(path.c_str(), argv.data());
  // Also search PATH: if another program (a dynamic linker) has loaded us, beside_us() gives the
  // folder of that program, and not ours.
  (void)::execvp(kProgram, argv.data());
  const int error = errno;
  const std::string shown = display_text(path.empty() ? kProgram : path);
  return failed(Error{
      Code::kNotFound, error,
      error == ENOENT
          ? fmt::format("gpurota-burn, the load, is not installed: it is neither {} nor in PATH; "
                        "install its package (gpurota-burn_*.deb of './dev package'; a build with "
                        "GPUROTA_BURN=OFF does not make it)",
                        shown)
          : fmt::format("cannot execute {}: {}", shown, std::strerror(error))});
}

}  // namespace gpurota::cli
