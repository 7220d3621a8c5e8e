// A process that the daemon waits for: its handle, and the watch on its death. State thread only.
#pragma once

#include "ports/processes.h"

#include <functional>
#include <optional>
#include <utility>

namespace gpurota::daemon {

struct TrackedProcess {
  ports::Processes::HandlePtr handle;
  ports::EventLoop::SourcePtr death;  // declared after the handle, to be destroyed first
  ports::ProcessId id;

  pid_t pid() const { return id.pid; }
  bool alive() const { return handle && handle->alive(); }
};

// How long to wait before a process that could not be read is read again.
inline constexpr Duration kReadRetryPeriod = std::chrono::milliseconds(100);

// Opens the process and watches for its death. kGone if it has ended.
inline Result<TrackedProcess> track(ports::Processes& processes, const ports::ProcessId& process,
                                    std::function<void()> on_death) {
  TrackedProcess tracked;
  tracked.id = process;
  GPUROTA_ASSIGN_OR_RETURN(tracked.handle, processes.open(process));
  if (on_death) {
    GPUROTA_ASSIGN_OR_RETURN(tracked.death,
                             processes.on_death(*tracked.handle, std::move(on_death)));
  }
  return tracked;
}

// Whether the error says that there is no such process. Other errors do not mean that the process
// has ended: a process that cannot be read now may live.
inline bool is_gone(const Error& error) {
  return error.code == Code::kGone || error.code == Code::kDenied || error.code == Code::kNotFound;
}

// Nothing if the process has ended; other errors stay.
template <class Found>
Result<std::optional<Found>> unless_gone(Result<Found> found) {
  if (found) return std::optional<Found>(std::move(*found));
  if (is_gone(found.error())) return std::nullopt;
  return tl::unexpected<Error>(std::move(found).error());
}

// Tracks the process that has this pid now. The pid must be that of a child of ours that has not
// been collected, because then no other process can have it. Or the pid must come from a source
// that can be asked repeatedly (the holder of a lock): then ask the source again afterwards.
inline Result<TrackedProcess> track_number(ports::Processes& processes, pid_t pid,
                                           std::function<void()> on_death) {
  GPUROTA_ASSIGN_OR_RETURN(const ports::ProcessInfo info, processes.read_info(pid));
  return track(processes, info.id(), std::move(on_death));
}

}  // namespace gpurota::daemon
