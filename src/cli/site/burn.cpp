// `gpurota burn` becomes gpurota-burn, so that this program never touches a GPU.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr const char* kProgram = "gpurota-burn";

// Beside this program; empty if that cannot be told.
std::string beside_us() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  path.resize(static_cast<std::size_t>(length));
  return path.substr(0, path.rfind('/') + 1) + kProgram;
}

}  // namespace

int burn(const Context&, const BurnOptions& options) {
  std::vector<char*> argv = {const_cast<char*>(kProgram)};
  for (const std::string& word : options.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string path = beside_us();
  if (!path.empty()) (void)::execv(path.c_str(), argv.data());
  // Not beside us, when we have been started through another program (a dynamic linker).
  (void)::execvp(kProgram, argv.data());
  return failed(
      Error{Code::kNotFound, errno,
            fmt::format("cannot execute {}: {}. It is installed beside gpurota",
                        display_text(path.empty() ? kProgram : path), std::strerror(errno))});
}

}  // namespace gpurota::cli
