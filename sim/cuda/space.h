// The address space as the driver sees it: the owner of each address range.
//
// Device work holds the lock shared while it touches bytes. A thread that changes a mapping holds
// the lock alone, so nothing is unmapped during a copy. The lock is taken after the driver's own
// lock, never before it.
#pragma once

#include "abi/cuda_abi.h"
#include "sim/cuda/physical.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>

namespace gpurota::sim {

struct Context;
struct MemPool;

struct Allocation {
  enum class Kind {
    kLinear,
    kManaged,
    kHost,
    kRegistered,
    kPool,
    kImported,  // of another process's pool
    kMapped,
    kIpc,  // of another process, opened by its handle
    kGraph,
    kExternal
  };

  CUdeviceptr base = 0;
  std::size_t size = 0;
  std::size_t room = 0;  // bytes that may be touched, if more than `size`
  Kind kind = Kind::kLinear;
  Context* context = nullptr;        // the context it is freed with; null: lives until freed
  int device = -1;                   // machine index; -1: the host's
  std::shared_ptr<Mapping> mapping;  // null for registered memory
  std::size_t mapping_offset = 0;
  std::uint64_t id = 0;
  unsigned flags = 0;  // as given when it was made
  MemPool* pool = nullptr;
  unsigned access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  bool exportable = false;
  unsigned opened = 1;                         // how many times it was opened by its handle
  std::map<int, CUmemAccess_flags> access_by;  // of mapped memory, by ordinal
  CUmemAllocationProp properties = {};         // of mapped memory
  // Of managed memory: its end lets the process be parked again.
  std::shared_ptr<std::atomic<std::uint32_t>> prevents_parking;

  std::size_t extent() const { return room > size ? room : size; }
  bool on_device() const { return kind != Kind::kHost && kind != Kind::kRegistered; }
};

class Space {
 public:
  void add(const Allocation& allocation);
  // The allocation that holds `address`.
  std::optional<Allocation> find(CUdeviceptr address) const;
  // One allocation for which `wanted` holds.
  std::optional<Allocation> find_if(const std::function<bool(const Allocation&)>& wanted) const;
  // Removes the allocation that starts at `base` and returns it.
  std::optional<Allocation> remove(CUdeviceptr base);
  void update(CUdeviceptr base, const std::function<void(Allocation&)>& change);
  // Removes all allocations for which `wanted` holds and returns them.
  std::vector<Allocation> remove_if(const std::function<bool(const Allocation&)>& wanted);
  bool overlaps(CUdeviceptr base, std::size_t size) const;

  // Holds the lock shared while device work touches bytes.
  class Use {
   public:
    explicit Use(Space& space) : space_(space), lock_(space.mutex_) {}
    // Checks that [address, address + bytes) may be touched, and makes the range resident. The
    // range is one or more adjoining allocations, or (if `allow_host`) the program's own memory.
    CUresult check(CUdeviceptr address, std::size_t bytes, bool allow_host) const;

   private:
    Space& space_;
    std::shared_lock<std::shared_mutex> lock_;
  };

 private:
  std::map<CUdeviceptr, Allocation>::const_iterator holder(CUdeviceptr address) const;

  mutable std::shared_mutex mutex_;
  std::map<CUdeviceptr, Allocation> allocations_;
};

inline std::byte* host_view(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace gpurota::sim
