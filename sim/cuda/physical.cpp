#include "sim/cuda/physical.h"

#include "sim/state/descriptors.h"
#include "sim/state/host_memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE  // Linux 5.14, in glibc since 2.35
#define MADV_POPULATE_WRITE 23
#endif

namespace gpurota::sim {
namespace {

constexpr std::size_t kGrain = std::size_t{64} << 10;  // the unit of residency
constexpr std::size_t kGrainsAtOnce = 256;             // 16 MiB between two checks of the host
// Never take the last memory of the host: other processes need some to continue.
constexpr std::uint64_t kHostReserve = std::uint64_t{256} << 20;
constexpr std::uint64_t kCheckEvery = std::uint64_t{64} << 20;

// One sparse file for all private memory of a device (index 0: of the host), so that a program with
// many allocations does not run out of descriptors. Offsets are never reused.
struct CommonFile {
  std::mutex mutex;
  Fd fd;
  std::uint64_t end = 0;
};

CommonFile& common_file(int device) {
  static auto* files = new CommonFile[kMaxDevices + 1];
  return files[device + 1];
}

Fd make_memfd() { return Fd(::memfd_create("gpurota-sim", MFD_CLOEXEC)); }

bool take_from_common(int device, std::size_t size, int* fd, std::uint64_t* offset) {
  CommonFile& file = common_file(device);
  const std::lock_guard lock(file.mutex);
  if (!file.fd) file.fd = make_memfd();
  const std::uint64_t end = file.end + size;
  if (!file.fd || ::ftruncate(file.fd.get(), static_cast<off_t>(end)) != 0) return false;
  *fd = file.fd.get();
  *offset = file.end;
  file.end = end;
  return true;
}

// Whether the host has `bytes` now. Queries the system once per kCheckEvery bytes handed out.
bool host_has(std::uint64_t bytes) {
  static std::mutex mutex;
  static std::uint64_t credit = 0;
  const std::lock_guard lock(mutex);
  if (bytes > credit) {
    const std::uint64_t available = host_bytes_available();
    if (available < kHostReserve + bytes) return false;
    credit = bytes + std::min(kCheckEvery, (available - kHostReserve - bytes) / 4);
  }
  credit -= bytes;
  return true;
}

bool populate(std::byte* address, std::size_t bytes) {
  if (::madvise(address, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  // Kernels before 5.14: the first write makes the pages; host_has has checked that they fit.
  return true;
}

}  // namespace

std::shared_ptr<Physical> Physical::create(Machine& machine, int device, std::size_t bytes,
                                           Sharing sharing, bool charged) {
  std::shared_ptr<Physical> memory(new Physical(machine));
  memory->size_ = bytes;
  memory->charged_ = false;
  if (sharing == Sharing::kExportable) {
    memory->own_fd_ = make_memfd();
    memory->fd_ = memory->own_fd_.get();
    if (memory->fd_ < 0 || ::ftruncate(memory->fd_, static_cast<off_t>(bytes)) != 0) return nullptr;
  } else if (!take_from_common(device, round_up(bytes, kGrain), &memory->fd_, &memory->offset_)) {
    return nullptr;
  }
  memory->resident_.resize(round_up(bytes, kGrain) / kGrain);
  if (device >= 0 && charged && !machine.charge(device, bytes, true)) return nullptr;
  memory->device_ = device;
  memory->charged_ = charged;
  if (sharing == Sharing::kExportable) (void)memory->share();
  return memory;
}

std::shared_ptr<Physical> Physical::import(Machine& machine, int fd) {
  if (!is_export(fd)) return nullptr;
  // Opened anew, not duplicated: this descriptor must not keep the exported file open.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  auto memory = import(machine, Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)), 0);
  if (memory) memory->exported_ = true;
  return memory;
}

int Physical::export_descriptor() {
  const std::string path = "/proc/self/fd/" + std::to_string(fd_);
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file || !share() || !machine_.export_as(id_, file.get())) return -1;
  exported_ = true;
  return file.release();
}

std::shared_ptr<Physical> Physical::import(Machine& machine, Fd file, std::uint64_t offset) {
  struct stat info = {};
  std::uint64_t bytes = 0;
  std::shared_ptr<Physical> memory(new Physical(machine));
  memory->charged_ = false;
  if (::fstat(file.get(), &info) != 0) return nullptr;
  const MemoryId id = {info.st_ino, offset};
  if (!machine.hold(id, &memory->device_, &bytes)) return nullptr;
  memory->id_ = id;
  memory->offset_ = offset;
  memory->size_ = bytes;
  memory->resident_.resize(round_up(memory->size_, kGrain) / kGrain);
  memory->own_fd_ = std::move(file);
  memory->fd_ = memory->own_fd_.get();
  return memory;
}

std::shared_ptr<Physical> Physical::borrow(Machine& machine, int device, Fd memory_fd,
                                           std::uint64_t offset, std::size_t bytes) {
  std::shared_ptr<Physical> memory(new Physical(machine));
  memory->charged_ = false;
  memory->borrowed_ = true;
  memory->device_ = device;
  memory->size_ = bytes;
  memory->offset_ = offset;
  memory->own_fd_ = std::move(memory_fd);
  memory->fd_ = memory->own_fd_.get();
  memory->resident_.resize(round_up(bytes, kGrain) / kGrain);
  return memory;
}

Physical::~Physical() {
  const bool was_shared = is_shared();
  const bool is_last = !was_shared || machine_.drop(id_);
  // A file of this memory alone is freed when closed; in a common file, free the pages of this
  // memory.
  if (fd_ >= 0 && is_last && !borrowed_ && !exported_ && size_ > 0) {
    (void)::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
                      static_cast<off_t>(round_up(size_, kGrain)));
  }
  if (host_bytes_ > 0) machine_.discharge_host(host_bytes_);
  if (charged_on_touch_ > 0) machine_.discharge(device_, charged_on_touch_);
  if (!was_shared && charged_ && device_ >= 0) machine_.discharge(device_, size_);
}

bool Physical::share() {
  if (is_shared()) return true;
  struct stat info = {};
  if (::fstat(fd_, &info) != 0) return false;
  const MemoryId id = {info.st_ino, offset_};
  if (!machine_.share(id, device_, size_)) return false;
  id_ = id;
  return true;
}

bool Physical::reserve_host() {
  if (!host_has(size_) || !machine_.charge_host(size_)) return false;
  host_bytes_ += size_;
  host_reserved_ = true;
  return true;
}

bool Physical::touch_grains(std::byte* view, std::size_t first, std::size_t end) {
  const std::size_t start = first * kGrain;
  const std::size_t bytes = std::min(end * kGrain, size_) - start;
  if (!borrowed_) {
    if (!host_reserved_) {
      if (!host_has(bytes) || !machine_.charge_host(bytes)) return false;
      host_bytes_ += bytes;
    }
    // Managed memory moves to the GPU when touched, as long as the GPU has room.
    if (device_ >= 0 && !charged_ && !is_shared() && machine_.charge(device_, bytes, false)) {
      charged_on_touch_ += bytes;
    }
  }
  if (!populate(view + start, bytes)) return false;
  for (std::size_t grain = first; grain < end; ++grain) resident_[grain] = true;
  return true;
}

bool Physical::touch(std::byte* view, std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return true;
  const std::lock_guard lock(mutex_);
  const std::size_t end = (offset + bytes - 1) / kGrain + 1;
  std::size_t grain = offset / kGrain;
  while (grain < end) {
    const std::size_t first = grain;
    if (resident_[grain++]) continue;
    while (grain < end && !resident_[grain] && grain - first < kGrainsAtOnce) ++grain;
    if (!touch_grains(view, first, grain)) return false;
  }
  return true;
}

std::byte* reserve_addresses(std::size_t size, std::size_t alignment, std::byte* wished) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (wished != nullptr) {
    void* exact = ::mmap(wished, size, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (exact == wished) return wished;
    if (exact != MAP_FAILED) ::munmap(exact, size);
  }
  const std::size_t whole = size + alignment;
  void* memory = ::mmap(nullptr, whole, PROT_NONE, kFlags, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(memory);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  std::byte* aligned = start + (round_up(address, alignment) - address);
  if (aligned != start) ::munmap(start, static_cast<std::size_t>(aligned - start));
  std::byte* end = start + whole;
  if (aligned + size != end) {
    ::munmap(aligned + size, static_cast<std::size_t>(end - (aligned + size)));
  }
  return aligned;
}

std::shared_ptr<Mapping> Mapping::create(std::shared_ptr<Physical> memory, std::size_t alignment) {
  const std::size_t size = round_up(memory->size(), kGrain);
  std::byte* address = reserve_addresses(size, alignment, nullptr);
  if (address == nullptr) return nullptr;
  void* mapped = ::mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->fd(),
                        static_cast<off_t>(memory->offset()));
  if (mapped == MAP_FAILED) {
    ::munmap(address, size);
    return nullptr;
  }
  std::shared_ptr<Mapping> mapping(new Mapping);
  mapping->memory_ = std::move(memory);
  mapping->address_ = address;
  mapping->size_ = size;
  return mapping;
}

std::shared_ptr<Mapping> Mapping::create_at(std::shared_ptr<Physical> memory, std::size_t offset,
                                            std::byte* address, std::size_t size) {
  void* mapped = ::mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->fd(),
                        static_cast<off_t>(memory->offset() + offset));
  if (mapped == MAP_FAILED) return nullptr;
  std::shared_ptr<Mapping> mapping(new Mapping);
  mapping->memory_ = std::move(memory);
  mapping->address_ = address;
  mapping->size_ = size;
  mapping->memory_offset_ = offset;
  mapping->in_reservation_ = true;
  return mapping;
}

Mapping::~Mapping() {
  if (in_reservation_) {
    (void)::mmap(address_, size_, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  } else {
    ::munmap(address_, size_);
  }
}

}  // namespace gpurota::sim
