// Decides for the watch to whom a process on a GPU belongs. Pure.
#pragma once

#include "watch/finding.h"

#include <string_view>

namespace gpurota::watch {

// Whether the watch ignores the process, however much memory it holds: it draws a desktop, or is on
// the site's list.
bool is_ignored(const SeenProcess& process, const Policy& policy);

// The lease of this GPU to which the process's memory belongs: the one that it runs in, or one that
// takes all processes of its user there. At most one. nullptr: none.
const SeenLease* owning_lease(const SeenProcess& process, const Reading& reading);

// The lease that allows the process to be there: the owning lease, or one by which its user has the
// whole GPU. nullptr: none.
const SeenLease* covering_lease(const SeenProcess& process, const Reading& reading);

// Whether libgpurota should enforce the lease's limit in the process, and does not.
bool is_not_limited(const SeenProcess& process, const SeenLease& lease, const Reading& reading);

// Whether a command line talks to an engine that starts processes elsewhere (docker, podman, …).
bool talks_to_container_engine(const std::vector<std::string>& command);

}  // namespace gpurota::watch
