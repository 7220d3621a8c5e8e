#include "sim/state/machine.h"

#include "sim/state/descriptors.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sim {
namespace {

// A lock on one byte. Set by F_OFD_SETLK, the lock belongs to the open file: a forked child keeps
// the lock, and exec drops it. Set by F_SETLK, the lock belongs to the process.
struct flock byte_lock(int byte) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// The inode that identifies the PID namespace of this process; 0 without /proc.
std::uint64_t own_pid_namespace() {
  struct stat info = {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

// Never closed: a process that closes any descriptor of a file loses all its locks on the file.
int opened_once(const std::string& path) {
  static std::atomic<int> opened{-1};
  int fd = opened.load();
  if (fd >= 0) return fd;
  const int made = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  return opened.compare_exchange_strong(fd, made) ? made : fd;
}

}  // namespace

std::uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t process_start_time(std::int32_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return 0;
  char text[1024];
  const ssize_t length = ::read(file.get(), text, sizeof text - 1);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* after_name = std::strrchr(text, ')');  // the name may hold anything
  if (after_name == nullptr) return 0;
  char state = 0;
  unsigned long long start = 0;
  const int fields = std::sscanf(after_name + 1,
                                 " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                                 "%*d %*d %*d %llu",
                                 &state, &start);
  return fields == 2 && state != 'Z' && state != 'X' ? start : 0;
}

MachineLock::MachineLock(MachineState& state) : mutex_(&state.lock) {
  // No repair is needed: the dead owner wrote only single values to its own slot.
  if (pthread_mutex_lock(mutex_) == EOWNERDEAD) pthread_mutex_consistent(mutex_);
}

MachineLock::~MachineLock() { pthread_mutex_unlock(mutex_); }

std::unique_ptr<Machine> Machine::open(const std::string& dir) {
  std::string where = dir;
  if (where.empty()) {
    const char* named = secure_getenv("GPUROTA_SIM_DIR");
    if (named == nullptr || *named == '\0') return nullptr;
    where = named;
  }
  const Fd file(::open((where + "/state").c_str(), O_RDWR | O_CLOEXEC));
  Fd locks(::open((where + "/locks").c_str(), O_RDWR | O_CLOEXEC));
  struct stat info = {};
  if (!file || !locks || ::fstat(file.get(), &info) != 0) return nullptr;
  if (static_cast<std::uint64_t>(info.st_size) != sizeof(MachineState)) return nullptr;
  void* memory =
      ::mmap(nullptr, sizeof(MachineState), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<Machine> machine(new Machine);
  machine->state_ = static_cast<MachineState*>(memory);
  machine->locks_ = std::move(locks);
  machine->pids_ = where + "/pids";
  machine->dir_ = where;
  const MachineState& state = *machine->state_;
  if (state.magic != kStateMagic || state.version != kStateVersion) return nullptr;
  return machine;
}

Machine::~Machine() {
  if (state_ != nullptr) ::munmap(state_, sizeof(MachineState));
}

bool Machine::create(const std::string& dir, const MachineState& config, std::string* error) {
  const auto failed = [error](const std::string& what) {
    *error = what + ": " + std::strerror(errno);
    return false;
  };
  const std::string path = dir + "/state", draft = dir + "/state.new";
  const Fd locks(::open((dir + "/locks").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!locks) return failed("cannot make " + dir + "/locks");
  const Fd pids(::open((dir + "/pids").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!pids) return failed("cannot make " + dir + "/pids");
  const Fd file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return failed("cannot make " + draft);
  // Allocate now: a full disk must be an error here, not a SIGBUS in a program later.
  errno = ::posix_fallocate(file.get(), 0, sizeof(MachineState));
  if (errno != 0) return failed("no room for " + draft);
  void* memory =
      ::mmap(nullptr, sizeof(MachineState), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return failed("cannot map " + draft);
  std::memcpy(memory, static_cast<const void*>(&config), sizeof config);
  auto* state = static_cast<MachineState*>(memory);
  state->magic = kStateMagic;
  state->version = kStateVersion;
  state->size = sizeof(MachineState);
  state->pid_namespace = own_pid_namespace();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&state->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
  ::munmap(memory, sizeof(MachineState));
  if (::rename(draft.c_str(), path.c_str()) != 0) return failed("cannot make " + path);
  return true;
}

bool Machine::join() {
  const MachineLock lock(*state_);
  reap();
  for (int i = 0; i < kMaxProcesses; ++i) {
    ProcessSlot& slot = state_->process[i];
    if (slot.state.load() != kSlotFree) continue;
    struct flock mine = byte_lock(i);
    if (::fcntl(locks_.get(), F_OFD_SETLK, &mine) != 0 && errno == EAGAIN) continue;
    slot.inner_pid = ::getpid();
    slot.pid_namespace = own_pid_namespace();
    const bool inside = slot.pid_namespace != state_->pid_namespace;
    if (inside && ::fcntl(opened_once(pids_), F_SETLK, &mine) != 0) return false;
    slot.pid = inside ? 0 : slot.inner_pid;
    slot.start_time = process_start_time(slot.inner_pid);
    slot.release_at_ns = 0;
    slot.host_bytes = 0;
    slot.park = kParkRunning;
    slot.in_calls = 0;
    slot.in_flight = 0;
    slot.managed = 0;
    for (DeviceUse& use : slot.use) {
      use.bytes = 0;
      use.contexts = 0;
      for (auto& slice : use.activity.slice) slice = 0;
    }
    state_->process_end = std::max(state_->process_end, i + 1);
    slot.state = kSlotLive;
    slot_ = i;
    note_group();
    return true;
  }
  return false;
}

bool Machine::lock_held(int slot, bool if_unknown) const {
  struct flock probe = byte_lock(slot);
  if (::fcntl(locks_.get(), F_OFD_GETLK, &probe) != 0) return if_unknown;
  return probe.l_type != F_UNLCK;
}

bool Machine::is_alive(int slot) const {
  // exec drops the lock, too (its descriptor is close-on-exec), as it should: exec frees GPU memory
  // just as the end of the process does.
  if (!lock_held(slot, true)) return false;
  const ProcessSlot& process = state_->process[slot];
  if (process.pid_namespace != state_->pid_namespace) return container_alive(slot);
  const std::uint64_t start = process_start_time(process.pid);
  if (start != 0) return start == process.start_time;
  // A process that hidepid hides still lives: kill then fails with EPERM.
  return ::kill(process.pid, 0) != 0 && errno == EPERM;
}

// Also stores the pid in the machine's namespace. F_GETLK returns the pid of the lock's owner as
// the caller's namespace sees it, but never reports the caller's own lock. NVML shows every process
// the pids of the machine's namespace.
bool Machine::container_alive(int slot) const {
  ProcessSlot& process = state_->process[slot];
  const std::uint64_t here = own_pid_namespace();
  if (process.pid_namespace == here && process.inner_pid == ::getpid()) return true;
  struct flock probe = byte_lock(slot);
  if (::fcntl(opened_once(pids_), F_GETLK, &probe) != 0 || probe.l_type == F_UNLCK) return false;
  if (here == state_->pid_namespace && probe.l_pid > 0) process.pid = probe.l_pid;
  return true;
}

void Machine::reap(bool lazily) {
  const std::uint64_t now = now_ns();
  if (lazily && now - state_->reaped_at_ns < 5'000'000) return;
  state_->reaped_at_ns = now;
  for (int i = 0; i < state_->process_end; ++i) {
    ProcessSlot& slot = state_->process[i];
    if (i == slot_ || slot.state.load() == kSlotFree) continue;
    if (slot.state.load() == kSlotLive) {
      if (is_alive(i)) continue;
      slot.release_at_ns = 0;
      slot.state = kSlotDead;
    }
    if (state_->hold_for_children.load() != 0 && lock_held(i, false)) continue;
    if (slot.release_at_ns == 0) slot.release_at_ns = now + state_->release_delay_ns.load();
    if (now < slot.release_at_ns) continue;
    for (SharedAllocation& shared : state_->shared) {
      if (shared.id == MemoryId()) continue;
      auto* end = std::remove(std::begin(shared.holder), std::end(shared.holder), i);
      std::fill(end, std::end(shared.holder), -1);
      if (shared.holder[0] < 0 && shared.exported == 0) shared.id = {};
    }
    slot.state = kSlotFree;
  }
  drop_unkept();
}

void Machine::drop_unkept() {
  bool has_read = false;
  std::set<std::uint64_t> open;
  for (int i = 0; i < state_->shared_end; ++i) {
    SharedAllocation& shared = state_->shared[i];
    if (shared.id == MemoryId() || shared.exported == 0 || shared.holder[0] >= 0) continue;
    if (!has_read) open = inodes_of_open_exports();
    has_read = true;
    if (!open.contains(shared.id.inode)) shared.id = {};
  }
}

std::uint64_t Machine::shared_bytes(int device, int slot) const {
  std::uint64_t sum = 0;
  for (int i = 0; i < state_->shared_end; ++i) {
    const SharedAllocation& shared = state_->shared[i];
    if (shared.id == MemoryId() || shared.device != device) continue;
    if (slot < 0 || shared.holder[0] == slot) sum += shared.bytes;
  }
  return sum;
}

std::uint64_t Machine::used_on(int device) const {
  std::uint64_t sum = shared_bytes(device, -1) + state_->faults[device].hidden_bytes.load();
  for (int i = 0; i < state_->process_end; ++i) {
    const ProcessSlot& slot = state_->process[i];
    if (slot.state.load() != kSlotFree) sum += slot.use[device].bytes.load();
  }
  return sum;
}

bool Machine::charge(int device, std::uint64_t bytes, bool is_allocation) {
  const MachineLock lock(*state_);
  DeviceFaults& faults = state_->faults[device];
  if (is_allocation && faults.fail_count.load() > 0 && faults.fail_after.fetch_sub(1) <= 0) {
    faults.fail_count.fetch_sub(1);
    return false;
  }
  const DeviceConfig& gpu = state_->device[device];
  const std::uint64_t capacity = gpu.memory_bytes - gpu.reserved_bytes;
  reap(true);
  std::uint64_t used = used_on(device);
  if (used > capacity || bytes > capacity - used) {
    reap();
    used = used_on(device);
  }
  if (used > capacity || bytes > capacity - used) return false;
  if (has_group_limits()) {
    note_group();
    if (bytes > smallest_group_limit(device, state_->process[slot_].group).room()) return false;
  }
  state_->process[slot_].use[device].bytes += bytes;
  return true;
}

void Machine::discharge(int device, std::uint64_t bytes) {
  const MachineLock lock(*state_);
  state_->process[slot_].use[device].bytes -= bytes;
}

void Machine::count_context(int device, int change) {
  state_->process[slot_].use[device].contexts += static_cast<std::uint32_t>(change);
}

bool Machine::charge_host(std::uint64_t bytes) {
  const MachineLock lock(*state_);
  reap(true);
  std::uint64_t sum = 0;
  for (int i = 0; i < state_->process_end; ++i) {
    const ProcessSlot& slot = state_->process[i];
    if (slot.state.load() != kSlotFree) sum += slot.host_bytes.load();
  }
  const std::uint64_t budget = state_->host_budget_bytes;
  if (sum > budget || bytes > budget - sum) return false;
  state_->process[slot_].host_bytes += bytes;
  return true;
}

void Machine::discharge_host(std::uint64_t bytes) { state_->process[slot_].host_bytes -= bytes; }

bool Machine::share(const MemoryId& id, int device, std::uint64_t bytes) {
  const MachineLock lock(*state_);
  for (int i = 0; i < kMaxShared; ++i) {
    SharedAllocation& shared = state_->shared[i];
    if (shared.id != MemoryId()) continue;
    state_->shared_end = std::max(state_->shared_end, i + 1);
    shared.bytes = bytes;
    shared.device = device;
    shared.exported = 0;
    std::fill(std::begin(shared.holder), std::end(shared.holder), -1);
    shared.holder[0] = slot_;
    shared.id = id;
    if (device >= 0) state_->process[slot_].use[device].bytes -= bytes;
    return true;
  }
  return false;
}

bool Machine::hold(const MemoryId& id, int* device, std::uint64_t* bytes) {
  const MachineLock lock(*state_);
  reap();
  for (SharedAllocation& shared : state_->shared) {
    if (shared.id != id) continue;
    auto* free_place = std::find(std::begin(shared.holder), std::end(shared.holder), -1);
    if (free_place == std::end(shared.holder)) return false;
    *free_place = slot_;
    *device = shared.device;
    *bytes = shared.bytes;
    return true;
  }
  return false;
}

bool Machine::drop(const MemoryId& id) {
  const MachineLock lock(*state_);
  for (SharedAllocation& shared : state_->shared) {
    if (shared.id != id) continue;
    auto* mine = std::find(std::begin(shared.holder), std::end(shared.holder), slot_);
    if (mine == std::end(shared.holder)) return false;
    std::copy(mine + 1, std::end(shared.holder), mine);
    shared.holder[kMaxHolders - 1] = -1;
    if (shared.holder[0] >= 0 || shared.exported != 0) return false;
    shared.id = {};
    return true;
  }
  return true;
}

bool Machine::export_as(const MemoryId& id, int fd) {
  const MachineLock lock(*state_);
  for (SharedAllocation& shared : state_->shared) {
    if (shared.id != id) continue;
    if (!mark_export(fd)) return false;
    shared.exported = 1;
    return true;
  }
  return false;
}

}  // namespace gpurota::sim
