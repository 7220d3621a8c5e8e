#include "ipc/unix_socket.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

Result<sockaddr_un> make_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.find('\0') != path.npos) {
    return fail(Code::kInvalid, "a socket's path may not be empty");
  }
  if (path.size() >= sizeof address.sun_path) {
    return fail(
        Code::kInvalid,
        fmt::format("the socket path {} has {} bytes, the system allows {}: choose a shorter "
                    "directory with --runtime-dir or GPUROTA_RUNTIME_DIR",
                    path, path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int connect_to(int fd, const sockaddr_un& address) {
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Fd open_spare() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Removes the socket that a dead daemon left.
Result<void> remove_stale(const std::string& path, int type) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("cannot look at " + path, errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(Code::kInvalid, fmt::format("{} exists, but is not a socket: remove it, or choose "
                                            "another directory with --runtime-dir",
                                            path));
  }
  if (answers(path, type)) {
    return fail(Code::kInvalid,
                fmt::format("another gpurotad is running here, or systemd listens for it "
                            "(gpurotad.socket): {} answers. Stop that, or choose another directory "
                            "with --runtime-dir",
                            path));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail_errno("cannot remove the old socket " + path, errno);
  }
  return {};
}

// Sets the group first, as changing it may clear mode bits.
Result<void> set_access(const std::string& path, const ListenOptions& options) {
  if (options.group && ::chown(path.c_str(), static_cast<uid_t>(-1), *options.group) != 0) {
    return fail_errno(fmt::format("cannot give {} to group {}", path, *options.group), errno);
  }
  if (::chmod(path.c_str(), options.mode) != 0) {
    return fail_errno("cannot set the mode of " + path, errno);
  }
  return {};
}

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

tl::unexpected<Error> bad_passed(const std::string& path, std::string_view what) {
  return fail(
      Code::kInvalid,
      fmt::format("the socket that systemd passes for {} {}: look at the unit that makes it "
                  "(gpurotad.socket), then 'systemctl daemon-reload' and 'systemctl restart "
                  "gpurotad.socket gpurotad.service'",
                  path, what));
}

// Checks that a passed socket is like one that we would make ourselves.
Result<void> check_passed(const std::string& path, const ListenOptions& options) {
  const int fd = options.passed;
  const char* const wanted =
      options.type == SOCK_STREAM ? "ListenStream=" : "ListenSequentialPacket=";
  if (option_of(fd, SO_DOMAIN) != AF_UNIX) return bad_passed(path, "is not a Unix socket");
  if (option_of(fd, SO_TYPE) != options.type) {
    return bad_passed(path, fmt::format("is of another type, not of {}", wanted));
  }
  if (option_of(fd, SO_ACCEPTCONN) != 1) {
    return bad_passed(path, "does not listen (it is a connection: Accept=yes is wrong)");
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return bad_passed(path, "cannot be reached, as nothing is at that path any more");
  }
  if (!S_ISSOCK(info.st_mode)) return bad_passed(path, "is hidden by another file at that path");
  if (info.st_uid != ::geteuid()) {
    return bad_passed(path, fmt::format("belongs to user {}, and this gpurotad is user {}'s",
                                        info.st_uid, ::geteuid()));
  }
  return {};
}

}  // namespace

Listener::Listener(std::string path, Fd fd, bool passed)
    : path_(std::move(path)), fd_(std::move(fd)), passed_(passed), spare_(open_spare()) {}

Listener::~Listener() {
  if (fd_ && !passed_) (void)::unlink(path_.c_str());
}

bool refuse_descriptors(int fd) {
  constexpr int kSoPassRights = 83;  // newer than Debian 12's headers
  const int off = 0;
  return ::setsockopt(fd, SOL_SOCKET, kSoPassRights, &off, sizeof off) == 0;
}

Result<Listener> Listener::make(const std::string& path, const ListenOptions& options) {
  if (options.passed >= 0) return take_over(path, options);
  GPUROTA_ASSIGN_OR_RETURN(const sockaddr_un address, make_address(path));
  GPUROTA_TRY(remove_stale(path, options.type));
  Fd fd(::socket(AF_UNIX, options.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno("cannot make a socket", errno);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno("cannot make the socket " + path, errno);
  }
  (void)refuse_descriptors(fd.get());
  Listener listener(path, std::move(fd), false);
  // Between bind and listen the file exists, and connecting to it is refused, so access is set
  // here.
  GPUROTA_TRY(set_access(path, options));
  if (::listen(listener.fd(), options.backlog) != 0) {
    return fail_errno("cannot listen on " + path, errno);
  }
  return listener;
}

Result<Listener> Listener::take_over(const std::string& path, const ListenOptions& options) {
  Fd fd(options.passed);
  GPUROTA_TRY(check_passed(path, options));
  if (::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return fail_errno("cannot set a descriptor", errno);
  }
  GPUROTA_TRY(set_blocking(fd.get(), false));
  (void)refuse_descriptors(fd.get());
  GPUROTA_TRY(set_access(path, options));
  return Listener(path, std::move(fd), true);
}

Result<std::optional<Fd>> Listener::accept() {
  for (;;) {
    Fd peer(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // The peer may have connected before this was set on the listening socket.
    if (peer && passed_) (void)refuse_descriptors(peer.get());
    if (peer) return std::optional<Fd>(std::move(peer));
    const int error_number = errno;
    if (error_number == EINTR || error_number == ECONNABORTED) continue;
    if (error_number == EAGAIN) return std::optional<Fd>();
    if (error_number != EMFILE && error_number != ENFILE) {
      return fail_errno("cannot accept on " + path_, error_number);
    }
    spare_.reset();
    const bool waiting =
        static_cast<bool>(Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    spare_ = open_spare();
    if (!waiting) return std::optional<Fd>();
    return fail(Code::kLimit, "out of descriptors, closing a new connection", error_number);
  }
}

Result<Fd> connect_unix(const std::string& path, int type, std::chrono::milliseconds timeout) {
  GPUROTA_ASSIGN_OR_RETURN(const sockaddr_un address, make_address(path));
  Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno("cannot make a socket", errno);
  // On a Unix socket connect() waits for room in the backlog for as long as a send may wait.
  timeval limit{timeout.count() / 1000, timeout.count() % 1000 * 1000};
  if (timeout.count() <= 0) limit.tv_usec = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int result = -1;
  do {
    result = connect_to(fd.get(), address);
  } while (result != 0 && errno == EINTR);
  const int error_number = result == 0 ? 0 : errno;
  limit = {};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  switch (error_number) {
    case 0:
      return fd;
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
      return fail(Code::kUnavailable,
                  fmt::format("gpurotad is not running: nobody listens at {}", path), error_number);
    case EAGAIN:
      return fail(Code::kTimeout, fmt::format("gpurotad does not answer at {} within {} ms", path,
                                              timeout.count()));
    default:
      return fail_errno("cannot connect to " + path, error_number);
  }
}

bool answers(const std::string& path, int type) {
  const auto address = make_address(path);
  if (!address) return false;
  const Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return false;
  // EAGAIN: a full backlog, so somebody is there. EPROTOTYPE: a socket of another type listens.
  return connect_to(fd.get(), *address) == 0 || errno == EAGAIN || errno == EPROTOTYPE;
}

Result<void> set_blocking(int fd, bool blocking) {
  const int flags = ::fcntl(fd, F_GETFL);
  const int wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
  if (flags < 0 || ::fcntl(fd, F_SETFL, wanted) != 0)
    return fail_errno("cannot set a descriptor", errno);
  return {};
}

}  // namespace gpurota::ipc
