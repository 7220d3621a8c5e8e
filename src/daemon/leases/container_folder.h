// The folder of the runtime directory that a container may have. The folder has the tenant socket
// and a file for /etc/ld.so.preload, but not the control socket, which would take root in a
// container for root of the machine. State thread, at start.
#pragma once

#include <string>

namespace gpurota::daemon {

// The path of the folder.
std::string container_folder(const std::string& tenant_socket);
// The socket by its path in that folder.
std::string container_socket(const std::string& tenant_socket);

// Makes the folder. `library` is the path in the file for /etc/ld.so.preload, which is the same
// inside and outside of containers; empty: no library, and no file. `tenant_socket` must exist: the
// socket in the folder is a hard link to it, so that the same users may connect. A failure is
// logged: everything but containers works without the folder.
void offer_to_containers(const std::string& tenant_socket, const std::string& library);

}  // namespace gpurota::daemon
