#include "sys/passed_sockets.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/un.h>

namespace gpurota::sys {
namespace {

// The path the socket is bound to; empty if there is none.
Result<std::string> read_path(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail_errno("it is not a socket", errno);
  }
  constexpr std::size_t kBegin = offsetof(sockaddr_un, sun_path);
  if (address.sun_family != AF_UNIX || size <= kBegin || address.sun_path[0] == '\0') {
    return std::string();
  }
  const std::string bytes(address.sun_path, std::min<std::size_t>(size, sizeof address) - kBegin);
  return bytes.substr(0, bytes.find('\0'));
}

tl::unexpected<Error> unexpected_socket(const std::string& name, const std::string& what,
                                        const std::vector<std::string>& paths) {
  return fail(
      Code::kInvalid,
      fmt::format("systemd passes a socket that gpurotad does not serve, '{}': {}. It serves {}: "
                  "change ListenStream= and ListenSequentialPacket= of that unit, or "
                  "--runtime-dir",
                  name, what, fmt::join(paths, " and ")));
}

Result<void> sort_in(Fd fd, const std::string& name, const std::vector<std::string>& paths,
                     std::vector<Fd>& found) {
  auto path = read_path(fd.get());
  if (!path) return unexpected_socket(name, path.error().message, paths);
  const auto place = std::find(paths.begin(), paths.end(), *path);
  if (path->empty()) return unexpected_socket(name, "it is not at a path", paths);
  if (place == paths.end()) return unexpected_socket(name, "it is at " + *path, paths);
  Fd& taken = found.at(static_cast<std::size_t>(place - paths.begin()));
  if (taken) return unexpected_socket(name, *path + " is passed twice", paths);
  taken = std::move(fd);
  return {};
}

}  // namespace

Result<std::vector<Fd>> take_passed_sockets(const std::vector<std::string>& paths) {
  std::vector<Fd> found(paths.size());
  char** names = nullptr;
  const int count = ::sd_listen_fds_with_names(1, &names);
  if (count < 0) return fail_errno("cannot read which sockets systemd passes", -count);
  Result<void> done;
  for (int i = 0; i < count; ++i) {
    Fd fd(SD_LISTEN_FDS_START + i);
    const std::string name = names[i];
    std::free(names[i]);
    if (done) done = sort_in(std::move(fd), name, paths, found);
  }
  std::free(names);
  if (!done) return tl::unexpected(std::move(done).error());
  return found;
}

}  // namespace gpurota::sys
