// Opens the state of a simulated machine and keeps its books: which process has how many bytes on
// which GPU.
//
// Used by both simulated libraries and by gpurota-sim; any thread. Every public function takes and
// releases the machine's lock itself. Nothing here aborts or prints.
#pragma once

#include "base/fd.h"
#include "sim/state/layout.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::sim {

struct ProcessUse {
  std::int32_t pid = 0;
  std::uint64_t bytes = 0;
  std::uint32_t contexts = 0;
};

struct DeviceTotals {
  std::uint64_t total = 0;  // without the driver's own share
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;  // by processes
};

// The memory limits of one control group on one device.
struct GroupLimits {
  std::uint64_t soft = 0;
  std::uint64_t hard = UINT64_MAX;
  std::uint64_t used = 0;  // by its processes, and by those of groups below it
  std::uint64_t room() const { return hard == UINT64_MAX ? hard : hard - std::min(hard, used); }
};

class Machine {
 public:
  // The machine in `dir`, or in $GPUROTA_SIM_DIR if `dir` is empty. Null if there is none.
  static std::unique_ptr<Machine> open(const std::string& dir);
  // Makes DIR/state from a filled-in configuration. On failure returns false and sets `error`.
  static bool create(const std::string& dir, const MachineState& config, std::string* error);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const MachineState& state() const { return *state_; }
  MachineState& state() { return *state_; }
  const DeviceConfig& config(int device) const { return state_->device[device]; }
  DeviceFaults& faults(int device) { return state_->faults[device]; }

  // Takes a slot for this process; false if none is left. Call once per process.
  bool join();
  bool joined() const { return slot_ >= 0; }

  // False if the device has no room, or (with `is_allocation`) if a fault is set for it.
  bool charge(int device, std::uint64_t bytes, bool is_allocation);
  void discharge(int device, std::uint64_t bytes);
  void count_context(int device, int change);
  void add_activity(int device, std::uint64_t from_ns, std::uint64_t to_ns);

  // False when the host's budget does not allow it.
  bool charge_host(std::uint64_t bytes);
  void discharge_host(std::uint64_t bytes);

  // Shared allocations. `share` moves bytes already charged to this process into the shared entry.
  // `hold` adds this process as a holder and returns the size and device. `drop` removes this
  // process as a holder; true if that was the last holder and `export_as` was never called.
  // `export_as` marks `fd` as a descriptor that keeps the memory too, in whatever process
  // (descriptors.h).
  bool share(const MemoryId& id, int device, std::uint64_t bytes);
  bool hold(const MemoryId& id, int* device, std::uint64_t* bytes);
  bool drop(const MemoryId& id);
  bool export_as(const MemoryId& id, int fd);

  // Whether the driver limits memory by control group, which drivers do since version 615. A limit
  // ends with its group. set_group_limits() returns false if the table is full.
  bool limits_groups() const;
  bool set_group_limits(int device, const std::string& group, std::uint64_t soft,
                        std::uint64_t hard);
  GroupLimits group_limits(int device, const std::string& group);

  // Parking (parking.cpp). The entry of this process, and of the living process with this number
  // (null: it is on no simulated GPU).
  ProcessSlot& own_slot() { return state_->process[slot_]; }
  ProcessSlot* find_process(std::int32_t pid);
  // Moves what the process has on its GPUs into host memory (take_off), and back (put_back). False:
  // there is no room.
  bool take_off(ProcessSlot& slot);
  bool put_back(ProcessSlot& slot);

  DeviceTotals totals(int device);
  // The same as a process of a limited control group sees it: no more than the smallest limit.
  DeviceTotals totals_here(int device);
  std::vector<ProcessUse> processes(int device);
  // Percent of the last second, for one process or (pid 0) for all.
  unsigned utilisation(int device, std::int32_t pid);
  // The number of processes that are alive, or whose memory is still held.
  int population();
  void count_unsupported(const char* name);
  std::uint64_t next_id() { return state_->next_id.fetch_add(1) + 1; }

 private:
  Machine() = default;
  void reap(
      bool lazily = false);  // under the lock: frees slots of the dead; lazily: not again in 5 ms
  bool is_alive(int slot) const;
  bool lock_held(int slot, bool if_unknown) const;
  bool container_alive(int slot) const;
  std::uint64_t used_on(int device) const;
  std::uint64_t shared_bytes(int device, int slot) const;
  // Under the lock, about limits of control groups (group_limits.cpp).
  bool has_group_limits() const;
  void note_group();  // stores the control group of this process in its slot
  void drop_ended_groups();
  std::uint64_t used_in(int device, const std::string& group) const;
  // The limit with the least room among those of `group` and of the groups above it.
  GroupLimits smallest_group_limit(int device, const std::string& group) const;
  void drop_unkept();  // under the lock; frees shared memory that no process or descriptor keeps

  MachineState* state_ = nullptr;
  std::string dir_;
  Fd locks_;  // DIR/locks: byte N is locked by the process in slot N and by its forked children
  std::string
      pids_;  // DIR/pids: byte N is locked by the process in slot N alone, if in a container
  int slot_ = -1;
};

// Holds the machine's lock; takes it over from an owner that was killed.
class MachineLock {
 public:
  explicit MachineLock(MachineState& state);
  ~MachineLock();
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

std::uint64_t now_ns();  // CLOCK_MONOTONIC, the same for all processes of the host
// Start time of a process as in /proc/PID/stat; 0 if there is none or it is a zombie.
std::uint64_t process_start_time(std::int32_t pid);

}  // namespace gpurota::sim
