// cuMemAlloc's memory of one context, taken from the GPU in slabs of 2 MiB, which small pieces
// share.
//
// Real GPUs also account for linear memory in steps of 2 MiB. Under the driver's lock.
#pragma once

#include "sim/cuda/physical.h"

#include <cstddef>
#include <map>
#include <memory>

namespace gpurota::sim {

class DeviceHeap {
 public:
  struct Piece {
    std::shared_ptr<Mapping> mapping;  // null: the GPU is full
    std::size_t offset = 0;
  };

  Piece allocate(Machine& machine, int device, std::size_t bytes);
  // Gives back a piece from allocate; its memory is freed when nothing uses the mapping any more.
  void release(const std::shared_ptr<Mapping>& mapping, std::size_t offset, std::size_t bytes);

 private:
  struct Slab {
    std::shared_ptr<Mapping> mapping;
    std::map<std::size_t, std::size_t> free;  // offset -> size
    std::size_t used = 0;
  };
  static bool take(Slab& slab, std::size_t bytes, Piece& piece);

  std::map<Mapping*, Slab> slabs_;
};

}  // namespace gpurota::sim
