#include "daemon/leases/container_folder.h"

#include "abi/env.h"
#include "base/log.h"
#include "base/replace_file.h"
#include "base/result.h"

#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

Result<void> make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail_errno("cannot make " + path, errno);
  }
  // mkdir() applies our umask to the mode; chmod() does not.
  if (::chmod(path.c_str(), 0755) != 0) return fail_errno("cannot change " + path, errno);
  return {};
}

// Replaces the name in one step, because running containers may look it up at any time.
Result<void> link_socket(const std::string& socket, const std::string& name) {
  const std::string draft = name + ".new";
  (void)::unlink(draft.c_str());
  if (::link(socket.c_str(), draft.c_str()) != 0 || ::rename(draft.c_str(), name.c_str()) != 0) {
    return fail_errno("cannot link " + socket + " to " + name, errno);
  }
  (void)::unlink(draft.c_str());  // rename() leaves the draft if both names are one socket
  return {};
}

Result<void> publish(const std::string& tenant_socket, const std::string& library) {
  const std::string folder = container_folder(tenant_socket);
  GPUROTA_TRY(make_folder(folder));
  GPUROTA_TRY(link_socket(tenant_socket, container_socket(tenant_socket)));
  const std::string preload = folder + "/" GPUROTA_PRELOAD_NAME;
  if (!library.empty()) return replace_file(preload, library + "\n", 0644);
  if (::unlink(preload.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno("cannot remove " + preload, errno);
}

}  // namespace

std::string container_folder(const std::string& tenant_socket) {
  return tenant_socket.substr(0, tenant_socket.rfind('/') + 1) + GPUROTA_CONTAINER_FOLDER;
}

std::string container_socket(const std::string& tenant_socket) {
  return container_folder(tenant_socket) + "/" GPUROTA_TENANT_SOCKET_NAME;
}

void offer_to_containers(const std::string& tenant_socket, const std::string& library) {
  if (const auto done = publish(tenant_socket, library); !done) {
    log::warn("containers cannot be in a lease", {{"error", done.error().message}});
  }
}

}  // namespace gpurota::daemon
