// A process that the daemon waits for: its handle, and the watch on its death. State thread only.
#pragma once

#include "ports/processes.h"

#include <functional>
#include <optional>

namespace gpurota::daemon {

struct TrackedProcess {
  ports::Processes::HandlePtr handle;
  ports::EventLoop::SourcePtr death;  // declared after the handle: must go first
  std::uint64_t start_ticks = 0;

  pid_t pid() const { return handle ? handle->pid() : 0; }
  bool alive() const { return handle && handle->alive(); }
};

// Opens and watches. kGone if it is dead already, or not the one that started at `start_ticks`.
inline Result<TrackedProcess> track(ports::Processes& processes, pid_t pid,
                                    std::optional<std::uint64_t> start_ticks,
                                    std::function<void()> on_death) {
  TrackedProcess tracked;
  GPUROTA_ASSIGN_OR_RETURN(const ports::ProcessInfo info, processes.read_info(pid));
  if (start_ticks && *start_ticks != info.start_ticks) {
    return fail(Code::kGone, "the process has ended and its pid was taken by another");
  }
  tracked.start_ticks = info.start_ticks;
  GPUROTA_ASSIGN_OR_RETURN(tracked.handle, processes.open(pid, info.start_ticks));
  if (on_death) {
    GPUROTA_ASSIGN_OR_RETURN(tracked.death,
                             processes.on_death(*tracked.handle, std::move(on_death)));
  }
  return tracked;
}

}  // namespace gpurota::daemon
