// A gRPC server at a Unix socket, and a client of one; for device plugins and DRA drivers. Made and
// ended on one thread; the services' functions run on gRPC's threads.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

// gRPC's own header is only for the .cpp files that use it.
namespace grpc {
class Channel;
class Server;
class Service;
class Status;
}  // namespace grpc

namespace gpurota::kube {

class UnixServer {
 public:
  // Replaces whatever is at `socket`; the services must outlive the server. kIo if it cannot listen
  // there.
  static Result<UnixServer> listen(const std::string& socket,
                                   const std::vector<grpc::Service*>& services);
  UnixServer(UnixServer&&) noexcept;
  UnixServer& operator=(UnixServer&&) = delete;
  // Closes all connections, waits for running calls, and removes the socket if it is still ours.
  ~UnixServer();

  // Whether the socket still exists.
  bool is_there() const;

 private:
  UnixServer(std::string socket, std::unique_ptr<grpc::Server> server);

  std::string socket_;
  std::unique_ptr<grpc::Server> server_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

grpc::Status status_of(const Error& error);
grpc::Status too_many_streams();

// Connects to a Unix socket at once: by default gRPC would share a connection within the process,
// and wait longer and longer before it tries again.
std::shared_ptr<grpc::Channel> connect_to(const std::string& socket);

}  // namespace gpurota::kube
