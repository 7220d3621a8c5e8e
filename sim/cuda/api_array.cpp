// CUDA arrays and mipmapped arrays.
#include "sim/cuda/api.h"
#include "sim/cuda/array.h"

#include <algorithm>

namespace gpurota::sim {

std::size_t element_bytes(CUarray_format format, unsigned channels) {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return channels * std::size_t{2};
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return channels * std::size_t{4};
    default:
      return 0;
  }
}

void destroy_arrays_of(Driver& driver, Context* context) {
  for (ArrayMemory* a :
       driver.arrays.select([&](const ArrayMemory& x) { return x.context == context; })) {
    (void)driver.arrays.take(a);
  }
  for (MipmappedArray* m :
       driver.mipmaps.select([&](const MipmappedArray& x) { return x.context == context; })) {
    (void)driver.mipmaps.take(m);
  }
}

}  // namespace gpurota::sim

using gpurota::sim::ArrayMemory;
using gpurota::sim::Context;
using gpurota::sim::ContextCall;
using gpurota::sim::Driver;
using gpurota::sim::kDevicePage;
using gpurota::sim::Mapping;
using gpurota::sim::MipmappedArray;
using gpurota::sim::Physical;
using gpurota::sim::round_up;

namespace {

constexpr unsigned kArrayFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_DEFERRED_MAPPING;

std::shared_ptr<Mapping> make_memory(Driver& driver, const Context& context, std::size_t bytes) {
  auto memory = Physical::create(*driver.machine, context.device, round_up(bytes, kDevicePage),
                                 Physical::Sharing::kPrivate);
  return memory ? Mapping::create(std::move(memory), kDevicePage) : nullptr;
}

std::unique_ptr<ArrayMemory> describe(Context* context, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  auto array = std::make_unique<ArrayMemory>();
  array->context = context;
  array->shape = shape;
  array->element = gpurota::sim::element_bytes(shape.Format, shape.NumChannels);
  const bool makes_sense =
      array->element > 0 && shape.Width > 0 && (shape.Flags & ~kArrayFlags) == 0 &&
      (shape.Depth == 0 || shape.Height > 0 || (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0);
  if (!makes_sense) return nullptr;
  return array;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& shape, const char* function) {
  const ContextCall call(function);
  if (call.failed()) return call.error();
  auto array = describe(call.context(), shape);
  if (out == nullptr || !array) return CUDA_ERROR_INVALID_VALUE;
  if (!array->is_deferred()) {
    array->mapping = make_memory(call.driver(), *call.context(), array->bytes());
    if (!array->mapping) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = reinterpret_cast<CUarray>(call.driver().arrays.add(std::move(array)));
  return CUDA_SUCCESS;
}

class ArrayCall : public ContextCall {
 public:
  explicit ArrayCall(CUarray handle, const char* function = __builtin_FUNCTION())
      : ContextCall(function) {
    if (failed()) return;
    array_ = driver_.arrays.find(handle);
    if (array_ == nullptr) error_ = CUDA_ERROR_INVALID_HANDLE;
  }
  ArrayMemory& array() const { return *array_; }

 private:
  ArrayMemory* array_ = nullptr;
};

}  // namespace

GPUROTA_SIM_API cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR flat = {shape->Width,  shape->Height,      0,
                                        shape->Format, shape->NumChannels, 0};
  return create(out, flat, __func__);
}

GPUROTA_SIM_API cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return shape == nullptr ? CUDA_ERROR_INVALID_VALUE : create(out, *shape, __func__);
}

GPUROTA_SIM_API cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  const ArrayCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR& shape = call.array().shape;
  *out = {shape.Width, shape.Height, shape.Format, shape.NumChannels};
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  const ArrayCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = call.array().shape;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray handle,
                                             CUdevice) {
  const ArrayCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr || !call.array().is_deferred()) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->size = round_up(call.array().bytes(), kDevicePage);
  out->alignment = kDevicePage;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuArrayDestroy(CUarray handle) {
  ArrayCall call(handle);
  if (call.failed()) return call.error();
  if (call.array().is_level) return CUDA_ERROR_INVALID_HANDLE;
  call.driver().wait_all(call.driver().tails(*call.context()), call.lock());
  (void)call.driver().arrays.take(&call.array());
  return CUDA_SUCCESS;
}

CUresult gpurota::sim::create_mipmap(
    Driver& driver, Context* context, const MipmapShape& shape,
    const std::function<std::shared_ptr<Mapping>(std::size_t)>& map, CUmipmappedArray* out) {
  if (shape.levels == 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::unique_ptr<ArrayMemory>> made;
  CUDA_ARRAY3D_DESCRIPTOR level = shape.first;
  std::size_t total = 0;
  for (unsigned i = 0; i < shape.levels; ++i) {
    auto array = describe(context, level);
    if (!array) return CUDA_ERROR_INVALID_VALUE;
    array->is_level = true;
    array->offset = shape.offset + total;
    total += round_up(array->bytes(), 512);
    made.push_back(std::move(array));
    const bool is_last = level.Width <= 1 && level.Height <= 1 && level.Depth <= 1;
    if (is_last) break;
    level.Width = std::max<std::size_t>(1, level.Width / 2);
    if (level.Height > 0) level.Height = std::max<std::size_t>(1, level.Height / 2);
    if (level.Depth > 0 && (level.Flags & CUDA_ARRAY3D_LAYERED) == 0) {
      level.Depth = std::max<std::size_t>(1, level.Depth / 2);
    }
  }
  const bool is_deferred = made.front()->is_deferred();
  const auto mapping = is_deferred ? nullptr : map(total);
  if (!mapping && !is_deferred) return CUDA_ERROR_OUT_OF_MEMORY;
  auto mipmap = std::make_unique<MipmappedArray>();
  mipmap->bytes = total;
  mipmap->context = context;
  for (auto& array : made) {
    array->mapping = mapping;
    mipmap->levels.push_back(driver.arrays.add(std::move(array)));
  }
  *out = reinterpret_cast<CUmipmappedArray>(driver.mipmaps.add(std::move(mipmap)));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                       unsigned levels) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto make = [&](std::size_t bytes) {
    return make_memory(call.driver(), *call.context(), bytes);
  };
  return gpurota::sim::create_mipmap(call.driver(), call.context(), {*shape, levels, 0}, make, out);
}

GPUROTA_SIM_API cuMipmappedArrayGetLevel(CUarray* out, CUmipmappedArray handle, unsigned level) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const MipmappedArray* mipmap = call.driver().mipmaps.find(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUarray>(mipmap->levels[level]);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                                      CUmipmappedArray handle, CUdevice) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const MipmappedArray* mipmap = call.driver().mipmaps.find(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || !mipmap->levels.front()->is_deferred()) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->size = round_up(mipmap->bytes, kDevicePage);
  out->alignment = kDevicePage;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  ContextCall call;
  if (call.failed()) return call.error();
  MipmappedArray* mipmap = call.driver().mipmaps.find(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  call.driver().wait_all(call.driver().tails(*call.context()), call.lock());
  for (ArrayMemory* level : mipmap->levels) (void)call.driver().arrays.take(level);
  (void)call.driver().mipmaps.take(mipmap);
  return CUDA_SUCCESS;
}
