// A gRPC server at a Unix socket, and a client of one. For whatever kubelet calls: device plugins;
// plugins for dynamic resources. Made and ended on one thread; the services' functions run on
// gRPC's.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

// gRPC's own header is for the .cpp files that use it.
namespace grpc {
class Channel;
class Server;
class Service;
class Status;
}  // namespace grpc

namespace gpurota::kube {

class UnixServer {
 public:
  // In the place of what is at `socket`; the services outlive it. kIo if it cannot listen there.
  static Result<UnixServer> listen(const std::string& socket,
                                   const std::vector<grpc::Service*>& services);
  UnixServer(UnixServer&&) noexcept;
  UnixServer& operator=(UnixServer&&) = delete;
  // Hangs up on everybody, waits for the functions that run, and removes the socket if it is still
  // this one.
  ~UnixServer();

  // Whether the socket is still at its place.
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

// To who listens at a Unix socket, now: gRPC would share connections of a process, and wait longer
// and longer before it tries again.
std::shared_ptr<grpc::Channel> connect_to(const std::string& socket);

}  // namespace gpurota::kube
