#include "daemon/published_library.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>

namespace gpurota::daemon {
namespace {

constexpr std::size_t kLargestLibrary = std::size_t{256} << 20U;

std::optional<std::string> bytes_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_all(file.get(), kLargestLibrary) : std::nullopt;
}

}  // namespace

Result<std::string> publish_library(const std::string& library, const std::string& folder) {
  if (library.empty()) return fail(Code::kNotFound, "libgpurota.so is not beside this gpurotad");
  const auto bytes = bytes_of(library);
  if (!bytes) return fail_errno("cannot read " + library, errno);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail_errno("cannot make " + folder, error.value());
  const std::string copy = folder + "/libgpurota.so";
  // An equal one stays, with what has it mapped.
  if (bytes_of(copy) == bytes) return copy;
  GPUROTA_TRY(replace_file(copy, *bytes, 0755));
  return copy;
}

}  // namespace gpurota::daemon
