#include "kube/unix_server.h"

#include "base/text.h"

#include <fmt/format.h>

#include <chrono>

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::kube {
namespace {

// Enough threads: one for each of kubelet's streams, and one more, because kubelet makes one other
// call at a time.
constexpr int kMostThreads = 64;
constexpr int kMostQuestion = 16 << 20;
constexpr int kMostAnswer = 64 << 20;
// How long running calls may take when the server ends; then they are cancelled.
constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

UnixServer::UnixServer(std::string socket, std::unique_ptr<grpc::Server> server)
    : socket_(std::move(socket)), server_(std::move(server)) {
  struct stat found;
  if (::lstat(socket_.c_str(), &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

UnixServer::UnixServer(UnixServer&&) noexcept = default;

Result<UnixServer> UnixServer::listen(const std::string& socket,
                                      const std::vector<grpc::Service*>& services) {
  if (::unlink(socket.c_str()) != 0 && errno != ENOENT) {
    return fail_errno("cannot remove " + socket, errno);
  }
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("gpurota");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMostQuestion);
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) {
    return fail(Code::kIo, fmt::format("cannot listen at {}: see whether its folder is there and "
                                       "whether this user may write to it",
                                       socket));
  }
  return UnixServer(socket, std::move(server));
}

UnixServer::~UnixServer() {
  if (!server_) return;
  const bool ours = is_there();
  server_->Shutdown(std::chrono::system_clock::now() + kPatience);
  if (ours) (void)::unlink(socket_.c_str());
}

bool UnixServer::is_there() const {
  struct stat found;
  return ::lstat(socket_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
}

std::shared_ptr<grpc::Channel> connect_to(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMostAnswer);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

grpc::Status status_of(const Error& error) {
  const auto code = [&] {
    switch (error.code) {
      case Code::kInvalid:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case Code::kNotFound:
        return grpc::StatusCode::NOT_FOUND;
      case Code::kDenied:
        return grpc::StatusCode::PERMISSION_DENIED;
      case Code::kNoGpu:
      case Code::kLimit:
        return grpc::StatusCode::RESOURCE_EXHAUSTED;
      case Code::kTimeout:
        return grpc::StatusCode::DEADLINE_EXCEEDED;
      case Code::kGone:
      case Code::kUnavailable:
        return grpc::StatusCode::UNAVAILABLE;
      case Code::kIo:
      case Code::kInternal:
        break;
    }
    return grpc::StatusCode::INTERNAL;
  }();
  constexpr std::size_t kMostText = 1000;
  return {code, "gpurota: " + display_text(error.message, kMostText)};
}

grpc::Status too_many_streams() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "gpurota: too many streams"};
}

}  // namespace gpurota::kube
