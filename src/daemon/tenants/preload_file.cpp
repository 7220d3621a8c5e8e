#include "daemon/tenants/preload_file.h"

#include "abi/env.h"
#include "base/replace_file.h"

#include <cerrno>

#include <unistd.h>

namespace gpurota::daemon {

Result<void> publish_preload(const std::string& tenant_socket, const std::string& library) {
  const std::string path =
      tenant_socket.substr(0, tenant_socket.rfind('/') + 1) + GPUROTA_PRELOAD_NAME;
  if (!library.empty()) return replace_file(path, library + "\n", 0644);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno("cannot remove " + path, errno);
}

}  // namespace gpurota::daemon
