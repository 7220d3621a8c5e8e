// The part of the runtime directory that a container may have: a folder in it with the tenant
// socket and a file for /etc/ld.so.preload, and without the control socket, at which root in a
// container would be root. State thread, at start.
#pragma once

#include <string>

namespace gpurota::daemon {

// Its path.
std::string container_folder(const std::string& tenant_socket);
// The socket by its path in that folder.
std::string container_socket(const std::string& tenant_socket);

// `library` is what the file names, inside as outside; empty: there is none, and no file. The
// socket must be there; it is the same one by another name (a hard link), so that who may connect
// is the same. A failure is logged: everything but containers works without it.
void offer_to_containers(const std::string& tenant_socket, const std::string& library);

}  // namespace gpurota::daemon
