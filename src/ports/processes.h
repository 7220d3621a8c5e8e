// Processes and control groups of the machine, behind one interface so that tests need neither root
// nor real processes.
//
// Called on the state thread; every call returns within microseconds to a few milliseconds,
// whatever the processes do. So nothing here opens /proc/PID/cmdline, environ, auxv, maps, smaps,
// pagemap or mem. The kernel reads these files under the lock of the address space, or opens them
// under the lock of execve (fs/proc/base.c, task_mmu.c). While a process maps a file of a slow
// file system, it holds the lock of its address space. The kernel needs neither of the two locks
// for stat, status, children, comm (array.c), cgroup, ns/user (namespaces.c) and the link exe
// (get_mm_exe_file, RCU).
#pragma once

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "ports/control_groups.h"
#include "ports/event_loop.h"
#include "ports/process_id.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::ports {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  uid_t uid = 0;                  // real uid
  std::uint64_t start_ticks = 0;  // since boot: with pid, unique within a boot
  bool zombie = false;

  ProcessId id() const { return {pid, start_ticks}; }
};

class Processes {
 public:
  // A process that cannot be confused with a later one of the same pid.
  class Handle {
   public:
    virtual ~Handle() = default;
    virtual pid_t pid() const = 0;
    virtual bool alive() const = 0;  // false once it is dead, zombies included
    // ESRCH is success: the process is gone already.
    virtual Result<void> send_signal(int signal) = 0;
  };
  using HandlePtr = std::unique_ptr<Handle>;

  virtual ~Processes() = default;

  // kGone if the process has ended, even if its pid is in use again; kDenied if its start is not
  // known or hidden (hidepid); kLimit if there is no descriptor for it.
  virtual Result<HandlePtr> open(const ProcessId& process) = 0;
  // open() calls the admission for each handle, with the process's real user, and keeps the result
  // with the handle. If the admission fails, open() returns its error.
  using Admission = std::function<Result<std::shared_ptr<void>>(uid_t)>;
  virtual void set_admission(Admission /*admission*/) {}
  // Calls back once when the process dies (soon, if it is dead already). Several callbacks may be
  // registered for a process.
  virtual Result<EventLoop::SourcePtr> on_death(Handle& process,
                                                std::function<void()> callback) = 0;

  virtual Result<ProcessInfo> read_info(pid_t pid) = 0;  // kGone, kDenied (hidepid)
  // Our pid of the child that has the pid `number` in the pid namespace of `parent`. If `parent` is
  // in our namespace, the result is `number`, whether that is a child or not. If `parent` is in a
  // namespace of its own, only the newest children of the parent's first thread are searched.
  // kGone: no such child was found.
  virtual Result<pid_t> child_called(const ProcessId& parent, pid_t number) = 0;
  // Whether the process cannot run: stopped by a signal or a debugger, or in a frozen control
  // group.
  virtual bool is_stopped(pid_t pid) = 0;
  // Host memory that the process shares with no other, in RAM or swapped out. The kernel updates
  // this count a little late. kGone, kDenied (hidepid).
  virtual Result<Bytes> private_memory(pid_t pid) = 0;
  // Whether the process handles the signal, or blocks it and may take it later; also false if that
  // cannot be told.
  virtual bool handles_signal(pid_t pid, int signal) = 0;
  // The arguments of a process as they were last read. Another thread reads them, because a process
  // can keep the reader waiting. Each call starts a new read. kGone, kDenied (hidepid);
  // kUnavailable: the read is not over, ask again in some milliseconds; kTimeout: the arguments
  // cannot be read for now.
  virtual Result<std::vector<std::string>> command_of(pid_t pid) = 0;
  // Grows whenever command_of() would return something else than before for some process.
  virtual std::uint64_t changes() const = 0;
  // A snapshot of all processes, for ancestry: either all of them or an error.
  virtual Result<std::vector<ProcessInfo>> read_all() = 0;
  virtual std::string boot_id() = 0;
  // "alice"; the number where there is no such account, and until a slow name service has answered.
  virtual std::string user_name(uid_t uid) = 0;
  // If `uid` is a subordinate id (subuid(5)), the account that owns it, else `uid` itself. Until a
  // slow name service has answered, every uid is returned as it is.
  virtual uid_t account_of(uid_t uid) { return uid; }
  // A process may be in several nested user namespaces below ours: returns the user who made the
  // outermost of these. In our namespace the process belongs to this user, whatever uid the process
  // has in its own namespace. Nothing: the process is in our namespace, or that cannot be told.
  virtual std::optional<uid_t> namespace_maker(pid_t /*pid*/) { return std::nullopt; }
  // The path of the program that a process runs, even where an upgrade has replaced it since; empty
  // if it cannot be told.
  virtual std::string executable_of(pid_t pid) = 0;

  // Valid as long as this object lives.
  virtual ControlGroups& cgroups() = 0;
};

// Whether the process still has its pid. If so, everything that the caller has just read about this
// pid belongs to this process.
inline bool is_still(Processes& processes, const ProcessId& process) {
  const auto info = processes.read_info(process.pid);
  return info && info->id() == process;
}

}  // namespace gpurota::ports
