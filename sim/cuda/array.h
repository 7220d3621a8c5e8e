// CUDA arrays: memory that programs address by element coordinates. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <functional>
#include <memory>
#include <vector>

namespace gpurota::sim {

struct ArrayMemory {
  Context* context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};  // as given; zero height or depth: fewer dimensions
  std::size_t element = 0;             // bytes
  std::shared_ptr<Mapping> mapping;    // null if deferred: the program would map memory later
  std::size_t offset = 0;              // of a mip level in its mapping
  bool is_level = false;               // belongs to a mipmapped array

  bool is_deferred() const { return (shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0; }
  std::size_t pitch() const { return shape.Width * element; }
  std::size_t rows() const { return shape.Height == 0 ? 1 : shape.Height; }
  std::size_t layers() const { return shape.Depth == 0 ? 1 : shape.Depth; }
  std::size_t bytes() const { return pitch() * rows() * layers(); }
};

struct MipmappedArray {
  Context* context = nullptr;
  std::vector<ArrayMemory*> levels;
  std::size_t bytes = 0;
};

struct MipmapShape {
  CUDA_ARRAY3D_DESCRIPTOR first = {};
  unsigned levels = 0;
  std::size_t offset = 0;  // of the first level in its mapping
};
// `map` returns memory of the given size; not called if the array is deferred.
CUresult create_mipmap(Driver& driver, Context* context, const MipmapShape& shape,
                       const std::function<std::shared_ptr<Mapping>(std::size_t)>& map,
                       CUmipmappedArray* out);

// Bytes of one element of a format with `channels` channels; 0 if `format` is unknown.
std::size_t element_bytes(CUarray_format format, unsigned channels);

}  // namespace gpurota::sim
