#include "kube/dra/claim_spec.h"

#include "base/directory.h"
#include "base/replace_file.h"
#include "containers/cdi_spec.h"

#include <fmt/format.h>

#include <cerrno>

#include <unistd.h>

namespace gpurota::kube {
namespace {

constexpr const char* kSpecKind = "k8s.gpurota.dev/claim";
constexpr mode_t kForAll = 0755, kForRoot = 0600;

std::string spec_file(const std::string& folder, const std::string& uid) {
  return fmt::format("{}/k8s.gpurota.dev-claim_{}.json", folder, uid);
}

}  // namespace

std::string spec_device(const std::string& uid) { return fmt::format("{}={}", kSpecKind, uid); }

Result<void> write_spec(const std::string& folder, const std::string& uid,
                        const ContainerAnswer& answer) {
  containers::CdiEdits edits;
  edits.variables = {answer.variables.begin(), answer.variables.end()};
  edits.mounts = answer.mounts;
  for (const std::string& file : answer.device_files) edits.devices.push_back({file, file});
  GPUROTA_TRY(make_directory(folder, kForAll));
  return replace_file(spec_file(folder, uid), containers::cdi_text(kSpecKind, {uid}, edits),
                      kForRoot);
}

Result<void> remove_spec(const std::string& folder, const std::string& uid) {
  const std::string file = spec_file(folder, uid);
  if (::unlink(file.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno("cannot remove " + file, errno);
}

}  // namespace gpurota::kube
