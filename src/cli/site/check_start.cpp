#include "cli/site/check_start.h"

#include "base/login_path.h"
#include "base/text.h"
#include "cli/run/lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

std::string path_of(const std::vector<proto::Variable>& environment) {
  const auto given =
      std::find_if(environment.begin(), environment.end(),
                   [](const proto::Variable& variable) { return variable.name == "PATH"; });
  return given == environment.end() ? kLoginPath : given->value;
}

Result<void> check_workdir(const std::string& workdir, const char* what) {
  struct stat info {};
  int error = ::stat(workdir.c_str(), &info) == 0 ? 0 : errno;
  if (error == 0 && !S_ISDIR(info.st_mode)) error = ENOTDIR;
  if (error == 0 && ::access(workdir.c_str(), X_OK) != 0) error = errno;
  if (error == 0) return {};
  return fail(Code::kInvalid,
              fmt::format("the {} cannot start in {}: {}; name another folder with --workdir", what,
                          display_text(workdir, 200), std::strerror(error)));
}

}  // namespace

Result<std::string> check_start(const Start& start) {
  const std::string workdir = start.workdir.value_or(".");
  GPUROTA_TRY(check_workdir(workdir, start.what));
  if (start.command.empty()) return std::string();
  const std::string& name = start.command.front();
  if (name.find('/') != std::string::npos) {
    const bool whole = name.starts_with("/");
    const auto found = find_command(whole ? name : workdir + "/" + name, nullptr);
    if (!found) return fail(Code::kInvalid, found.error().message);
    return std::string();
  }
  const std::string path = path_of(start.environment);
  const auto found = find_command(name, path.c_str());
  const auto ours = find_command(name, std::getenv("PATH"));
  if (found && (!ours || *ours == *found)) return std::string();
  const std::string mine = ours ? display_text(*ours, 200) : std::string();
  if (found) {
    return fmt::format("the {} runs {}; on your PATH '{}' is {}: write that if you mean it",
                       start.what, display_text(*found, 200), display_text(name, 80), mine);
  }
  std::string message = fmt::format("there is no command '{}' on the {}'s PATH ({})",
                                    display_text(name, 80), start.what, display_text(path, 300));
  message += ours ? fmt::format("; on yours it is {}: write that, or add --env PATH", mine)
                  : std::string("; write its whole path, or set PATH and add --env PATH");
  return fail(Code::kInvalid, std::move(message));
}

}  // namespace gpurota::cli
