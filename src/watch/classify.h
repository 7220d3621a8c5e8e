// Decides for the watch to whom a process on a GPU belongs. Pure.
#pragma once

#include "watch/finding.h"

#include <string_view>

namespace gpurota::watch {

// Neither foreign nor unreserved, whatever it holds: draws a desktop, or is on the site's list.
bool is_ignored(const SeenProcess& process, const Policy& policy);

// The lease of this GPU whose memory the process's memory is: the one it runs in, or one that takes
// all of its user's processes there. At most one. nullptr: none.
const SeenLease* owning_lease(const SeenProcess& process, const Reading& reading);

// The lease under which the process may be there: its own, or one by which its user has the GPU
// whole. nullptr: none.
const SeenLease* covering_lease(const SeenProcess& process, const Reading& reading);

// Whether the lease has a limit that libgpurota is to hold in the process, and does not.
bool is_not_limited(const SeenProcess& process, const SeenLease& lease, const Reading& reading);

// Whether a command line talks to an engine that starts processes elsewhere (docker, podman, …).
bool talks_to_container_engine(const std::vector<std::string>& command);

}  // namespace gpurota::watch
