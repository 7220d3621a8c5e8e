#include "kube/dra/claim_spec.h"

#include "base/directory.h"
#include "base/replace_file.h"
#include "containers/cdi_spec.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <unistd.h>

namespace gpurota::kube {
namespace {

constexpr const char* kSpecKind = "k8s.gpurota.dev/claim";
constexpr mode_t kForAll = 0755, kForRoot = 0600;

std::string spec_file(const std::string& key) {
  return fmt::format("k8s.gpurota.dev-claim_{}.json", key);
}

}  // namespace

std::string spec_device(const std::string& key) { return fmt::format("{}={}", kSpecKind, key); }

Result<void> write_spec(const std::string& folder, const std::string& key,
                        const ContainerAnswer& answer) {
  containers::CdiEdits edits;
  edits.variables = {answer.variables.begin(), answer.variables.end()};
  edits.mounts = answer.mounts;
  for (const std::string& file : answer.device_files) edits.devices.push_back({file, file});
  GPUROTA_TRY(make_directory(folder, kForAll));
  return replace_file(folder + "/" + spec_file(key), containers::cdi_text(kSpecKind, {key}, edits),
                      kForRoot);
}

Result<void> remove_specs(const std::string& folder, const std::string& uid) {
  const std::string begin = fmt::format("k8s.gpurota.dev-claim_{}.", uid);
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    if (!at->path().filename().native().starts_with(begin)) continue;
    if (::unlink(at->path().c_str()) != 0 && errno != ENOENT) {
      return fail_errno("cannot remove " + at->path().native(), errno);
    }
  }
  if (error) return fail_errno("cannot read " + folder, error.value());
  return {};
}

}  // namespace gpurota::kube
