// The file that a container mounts as its /etc/ld.so.preload, so that its programs load libgpurota.so beside what the image sets in
// LD_PRELOAD. It lies beside the tenant socket. State thread, at start.
#pragma once

#include "base/result.h"

#include <string>

namespace gpurota::daemon {

// `library` is where the file names it, inside as outside; empty: there is none, and no file.
Result<void> publish_preload(const std::string& tenant_socket, const std::string& library);

}  // namespace gpurota::daemon
