// Reads the state of libgpurota in processes that have a limit and are not tenants. Each user has a
// worker that reads /proc, as a process can make its reader wait (sys/process_image.h,
// sys/user_workers.h). State thread only.
#pragma once

#include "ports/event_loop.h"
#include "sys/process_image.h"
#include "sys/user_workers.h"
#include "watch/finding.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace gpurota::daemon {

// The state of libgpurota in processes that have a limit and are not tenants, as far as it is
// known.
class Libraries {
 public:
  virtual ~Libraries() = default;
  // `asks`: whether libgpurota, in a process without a lease in its environment, asks the daemon
  // for the lease of the process (an automatic lease).
  virtual watch::Library state_of(const watch::SeenProcess& process, bool asks) = 0;
};

class LibraryReader final : public Libraries {
 public:
  // Runs on a worker, and may still run after the destruction of this object.
  using Read = std::function<std::optional<sys::ProcessImage>(pid_t, std::uint64_t start_ticks)>;

  // `tenant_socket`: the value of GPUROTA_SOCKET that this daemon gives to programs.
  LibraryReader(ports::EventLoop& loop, std::string tenant_socket,
                Read read = sys::read_process_image);

  // The state that was read last, if that is not too long ago; also begins a new reading if it is
  // due.
  watch::Library state_of(const watch::SeenProcess& process, bool asks) override;
  // `listed`: the processes that NVML lists now. Discards the state of all other processes, and
  // idle workers.
  void keep_only(const std::set<pid_t>& listed);

 private:
  struct Known {
    std::uint64_t start_ticks = 0;
    bool reading = false;
    std::optional<TimePoint> asked;
    std::optional<sys::ProcessImage> image;
    TimePoint taken{};  // when `image` was requested
  };

  void read(pid_t pid, uid_t uid, Known& known);
  void take(pid_t pid, std::uint64_t start_ticks, std::optional<sys::ProcessImage> image);
  watch::Library judge(const sys::ProcessImage& image, bool in_lease, bool asks) const;

  ports::EventLoop& loop_;
  const std::string tenant_socket_;
  const Read read_;
  std::map<pid_t, Known> known_;
  sys::UserWorkers workers_;
};

}  // namespace gpurota::daemon
