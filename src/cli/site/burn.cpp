// `gpurota burn` becomes gpurota-burn, so that this program never touches a GPU.
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
  // Not beside us, when we have been started through another program (a dynamic linker).
  (void)::execvp(kProgram, argv.data());
  return failed(
      Error{Code::kNotFound, errno,
            fmt::format("cannot execute {}: {}. It is installed beside gpurota",
                        display_text(path.empty() ? kProgram : path), std::strerror(errno))});
}

}  // namespace gpurota::cli
