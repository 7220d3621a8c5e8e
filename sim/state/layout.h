// The state of a simulated machine: one file, DIR/state, which every process on the machine maps.
//
// gpurota-sim writes the configuration and zeroes the rest; libcuda.so.1 and libnvidia-ml.so.1 map
// the file. `lock`, a robust mutex, guards everything except the atomics. Each process writes only
// the figures of its own slot, and the use of a GPU is always the sum over the slots, so a process
// killed at any instruction leaves nothing half counted.
#pragma once

#include <atomic>
#include <cstdint>

#include <pthread.h>

namespace gpurota::sim {

constexpr std::uint32_t kStateMagic = 0x4d495347;  // "GSIM"
constexpr std::uint32_t kStateVersion = 10;
constexpr int kMaxDevices = 32;     // GPUs and MIG instances
constexpr int kMaxProcesses = 512;  // at a time, dead ones that still hold memory included
constexpr int kMaxShared = 1024;    // exported or imported physical allocations
constexpr int kMaxHolders = 8;      // processes that hold one shared allocation
constexpr int kMaxUnsupported = 1024;
constexpr int kMaxGroupLimits = 64;  // of all control groups and devices together
constexpr int kMaxGroupPath = 512;   // with its final zero
constexpr int kActivitySlices = 16;
constexpr std::uint64_t kActivitySliceNs = 100'000'000;

// The settings of one GPU or MIG instance in the machine file.
struct DeviceConfig {
  char name[96];
  char uuid[48];  // "GPU-…" or "MIG-…"
  std::uint8_t uuid_bytes[16];
  std::int32_t parent;  // MIG instance: device index of its GPU; else -1
  std::int32_t mig_enabled;
  std::uint32_t gpu_instance, compute_instance;
  std::uint32_t mig_position;  // among the instances of its GPU

  std::uint64_t memory_bytes;    // the total that NVML shows
  std::uint64_t reserved_bytes;  // of memory_bytes: the driver's own share
  std::uint64_t context_bytes;   // cost of one context
  std::uint64_t module_bytes;    // cost of a loaded module
  std::uint64_t bar1_bytes;

  std::uint32_t pci_domain, pci_bus, pci_device, pci_device_id, pci_subsystem_id;
  std::int32_t capability_major, capability_minor, architecture;
  std::int32_t multiprocessors, clock_khz, memory_clock_khz, bus_width_bits;
  std::int32_t l2_bytes, shared_per_block_optin, shared_per_multiprocessor;
  std::int32_t threads_per_multiprocessor, blocks_per_multiprocessor, copy_engines;
  std::int32_t compute_mode, persistence, ecc, peer_access;
  std::int32_t temperature_c, power_mw, power_limit_mw;
  std::int32_t nvlink_group;  // GPUs with the same number are joined; 0: none
  std::int32_t numa_node;
  std::int32_t unified;          // uses the host's memory; NVML shows none
  std::int32_t process_figures;  // what NVML lists; 0: nothing, 1: processes, 2: memory, too
  std::int32_t has_pci;          // 0: NVML has no PCI address or device file
};

// Settings that can be changed while the machine runs (gpurota-sim set).
struct DeviceFaults {
  std::atomic<std::uint32_t> lost;
  std::atomic<std::int64_t> fail_after;  // allocations that still succeed before the next fault
  std::atomic<std::int64_t> fail_count;  // allocations that fail after that; 0: no fault is set
  std::atomic<std::uint64_t> copy_bytes_per_second;  // 0: as fast as the host
  std::atomic<std::uint32_t> load_permille;          // shown as utilisation beside the real work
  std::atomic<std::int32_t> flip_bits;               // bits still to be flipped in memory
  std::atomic<std::uint64_t> ecc_errors;             // uncorrected
  std::atomic<std::uint32_t> xid, xid_count;         // last error reported, number of errors
  std::atomic<std::uint64_t> hidden_bytes;           // used, but by no listed process
  std::atomic<std::uint32_t> hides_processes;        // NVML lists none
};

// GPU time in slices of 100 ms, a ring that holds at least the last second.
struct Activity {
  std::atomic<std::uint64_t> slice[kActivitySlices];  // slice number << 32 | busy microseconds
};

// The use of one device by one process.
struct DeviceUse {
  std::atomic<std::uint64_t> bytes;  // contexts, modules and allocations
  std::atomic<std::uint32_t> contexts;
  Activity activity;
};

// The states of a process that is parked (cuCheckpointProcessLock and the like), as
// cuCheckpointProcessGetState reports them.
enum ParkState : std::uint32_t { kParkRunning = 0, kParkLocked = 1, kParkCheckpointed = 2 };

enum SlotState : std::uint32_t { kSlotFree = 0, kSlotLive = 1, kSlotDead = 2 };

struct ProcessSlot {
  std::atomic<std::uint32_t> state;
  std::int32_t pid;  // in the machine's namespace; 0: in a container, not yet seen from outside
  std::uint64_t start_time;     // as in /proc/PID/stat, because pids are reused
  std::uint64_t pid_namespace;  // of the process
  std::int32_t inner_pid;       // the pid in its own namespace
  std::uint64_t release_at_ns;  // dead: when the memory is freed; 0 while children hold it
  std::atomic<std::uint64_t> host_bytes;  // host memory made resident for this process
  // Parking (parking.cpp). `park` is a futex. The last two: what the process gets back when it is
  // restored.
  std::atomic<std::uint32_t> park;       // a ParkState
  std::atomic<std::uint32_t> in_calls;   // calls under way that a lock waits for
  std::atomic<std::uint32_t> in_flight;  // pieces of work that have not ended
  std::atomic<std::uint32_t> managed;    // allocations of managed memory, which prevent parking
  std::uint64_t parked_bytes[kMaxDevices];
  std::uint32_t parked_contexts[kMaxDevices];
  char group[kMaxGroupPath];  // its control group when it last allocated; empty: not known
  DeviceUse use[kMaxDevices];
};

// Identifies memory on the whole machine: the inode of its memfd and its offset there.
struct MemoryId {
  std::uint64_t inode = 0;  // 0: none
  std::uint64_t offset = 0;
  bool operator==(const MemoryId&) const = default;
};

// Physical memory that can outlive its creator. Charged to the first holder; to no process while
// only descriptors keep it.
struct SharedAllocation {
  MemoryId id;  // none: entry is free
  std::uint64_t bytes;
  std::int32_t device;
  std::int32_t exported;             // as a descriptor: lives while one is open anywhere
  std::int32_t holder[kMaxHolders];  // process slots, in order of arrival; -1: none
};

// A memory limit of a control group on one device: nvmlDeviceSetMemoryLimits_v1.
struct GroupLimit {
  char group[kMaxGroupPath];  // its directory; empty: the entry is free
  std::int32_t device;
  std::uint64_t soft, hard;
};

struct UnsupportedCall {
  char name[64];
  std::atomic<std::uint64_t> count;
};

struct MachineState {
  std::uint32_t magic, version;
  std::uint64_t size;
  pthread_mutex_t lock;

  std::uint64_t pid_namespace;  // where the machine was made: pids are shown as seen there
  char machine[64];
  char driver_version[80];
  std::int32_t cuda_version;  // 13000
  std::int32_t device_count;
  std::uint64_t host_budget_bytes;
  std::atomic<std::uint64_t> release_delay_ns;
  std::atomic<std::uint32_t> hold_for_children;
  std::atomic<std::uint64_t> park_delay_ns;  // that each step of parking takes
  std::int32_t process_end, shared_end;      // entries from here on were never used
  std::uint64_t reaped_at_ns;                // when a process last looked for dead ones
  std::atomic<std::uint64_t> next_id;  // of contexts, buffers and handles, unique on the machine

  DeviceConfig device[kMaxDevices];
  DeviceFaults faults[kMaxDevices];
  UnsupportedCall unsupported[kMaxUnsupported];
  GroupLimit group_limit[kMaxGroupLimits];
  SharedAllocation shared[kMaxShared];
  ProcessSlot process[kMaxProcesses];
};

}  // namespace gpurota::sim
