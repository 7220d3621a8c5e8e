// Physical memory of the simulated machine, and its mappings in this process.
//
// A Physical is a piece of a memfd: GPU memory (charged to the GPU in the machine's books) or host
// memory. Device work makes pages resident when it first touches them, after checking that the host
// has room, so that running short is an error code. A Mapping is one view of a Physical in the
// address space: device addresses are addresses of this process.
#pragma once

#include "base/fd.h"
#include "sim/state/machine.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace gpurota::sim {

constexpr std::size_t kDevicePage = std::size_t{2} << 20;  // the unit of GPU memory

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

class Physical {
 public:
  enum class Sharing { kPrivate, kExportable };

  // Memory of `device` (an index of the machine), or of the host when `device` is negative. Null
  // when there is no room. `charged` false (managed memory): the GPU is charged as pages are
  // touched.
  static std::shared_ptr<Physical> create(Machine& machine, int device, std::size_t bytes,
                                          Sharing sharing, bool charged = true);
  // A new descriptor of the memory, with an open file of its own; negative on failure.
  int export_descriptor();
  // The memory behind a descriptor that this or another process exported.
  static std::shared_ptr<Physical> import(Machine& machine, int fd);
  // The memory at `offset` of a file, shared by its owner; null when no process holds it any more.
  static std::shared_ptr<Physical> import(Machine& machine, Fd file, std::uint64_t offset);
  // Memory that another process owns and is charged for, at an offset of its memfd.
  static std::shared_ptr<Physical> borrow(Machine& machine, int device, Fd memory,
                                          std::uint64_t offset, std::size_t bytes);
  ~Physical();
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;

  int device() const { return device_; }
  std::size_t size() const { return size_; }
  int fd() const { return fd_; }
  std::uint64_t offset() const { return offset_; }
  // Lets other processes import the memory from now on; it then lives as long as any process holds
  // it. False when the machine's table of shared memory is full.
  bool share();
  bool is_shared() const { return id_ != MemoryId(); }
  const MemoryId& id() const { return id_; }  // empty: not shared
  // Reserves host memory for all of it now: for memory that the program itself will touch.
  bool reserve_host();
  // Makes [offset, offset + bytes) resident through the view at `view`; false when the host is
  // short of memory.
  bool touch(std::byte* view, std::size_t offset, std::size_t bytes);

 private:
  explicit Physical(Machine& machine) : machine_(machine) {}
  bool touch_grains(std::byte* view, std::size_t first, std::size_t end);

  Machine& machine_;
  int device_ = -1;
  std::size_t size_ = 0;
  int fd_ = -1;
  Fd own_fd_;  // only if it is not a piece of the device's common file
  std::uint64_t offset_ = 0;
  MemoryId id_;  // its id in the table of shared allocations
  bool charged_ = true, borrowed_ = false, exported_ = false, host_reserved_ = false;
  std::mutex mutex_;
  std::vector<bool> resident_;  // by grain
  std::uint64_t charged_on_touch_ = 0, host_bytes_ = 0;
};

class Mapping {
 public:
  // Maps at an address that the system chooses, a multiple of `alignment`. Null on failure.
  static std::shared_ptr<Mapping> create(std::shared_ptr<Physical> memory, std::size_t alignment);
  // Maps at `address`, over a reservation; no access until protect().
  static std::shared_ptr<Mapping> create_at(std::shared_ptr<Physical> memory, std::size_t offset,
                                            std::byte* address, std::size_t size);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* address() const { return address_; }
  std::size_t size() const { return size_; }
  Physical& memory() const { return *memory_; }
  const std::shared_ptr<Physical>& memory_ptr() const { return memory_; }
  std::size_t memory_offset() const { return memory_offset_; }
  bool touch(std::size_t offset, std::size_t bytes) {
    return memory_->touch(address_ - memory_offset_, memory_offset_ + offset, bytes);
  }

 private:
  Mapping() = default;
  std::shared_ptr<Physical> memory_;
  std::byte* address_ = nullptr;
  std::size_t size_ = 0, memory_offset_ = 0;
  bool in_reservation_ = false;
};

// Reserves aligned address space without memory; null on failure. The caller frees it with munmap.
std::byte* reserve_addresses(std::size_t size, std::size_t alignment, std::byte* wished);

}  // namespace gpurota::sim
