// Arrays and mipmapped arrays: memory that the driver lays out as it likes.
//
// The driver says how much memory an array takes: the hook makes an array of the same shape with
// deferred mapping, which has no memory, and asks the driver how much it would need. Where the
// driver lacks that query, the most that the layout can need is charged. Charges are in whole
// 2 MiB, because nothing says which arrays share 2 MiB.
#include "interposer/account/device.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/reserve.h"
#include "interposer/memory/vmm.h"

namespace gpurota::interposer {
namespace {

// Bytes of an element, for formats whose elements have one size. Elements of block-compressed and
// planar formats are smaller than the 16 bytes returned for them.
uint64_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const uint64_t channels = shape.NumChannels < 4 ? shape.NumChannels : 4;
  switch (shape.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4 * channels;
    default:
      return 16;
  }
}

uint64_t up_to(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Rounds `value` up to whole blocks of a layout. The block is `smallest`, doubled until it is
// `largest` or holds all of `value`.
uint64_t in_blocks(uint64_t value, uint64_t smallest, uint64_t largest) {
  uint64_t block = smallest;
  while (block < value && block < largest) block *= 2;
  return up_to(value, block);
}

// Rows are in units of 512 bytes; a block has up to 128 rows and 32 slices.
uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const uint64_t height = shape.Height != 0 ? in_blocks(shape.Height, 8, 128) : 1;
  const bool layered = (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  const uint64_t depth =
      shape.Depth == 0 ? 1 : (layered ? shape.Depth : in_blocks(shape.Depth, 1, 32));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(shape.Width, element_bytes(shape), &bytes) || bytes >> 62 != 0 ||
      __builtin_mul_overflow(up_to(bytes, 512), height, &bytes) ||
      __builtin_mul_overflow(bytes, depth, &bytes)) {
    return UINT64_MAX;
  }
  return bytes;
}

uint64_t halved(size_t value) { return value > 1 ? value / 2 : value; }

uint64_t most_bytes(CUDA_ARRAY3D_DESCRIPTOR shape, unsigned levels) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < levels && i < 64; ++i) {
    if (__builtin_add_overflow(sum, level_bytes(shape), &sum)) return UINT64_MAX;
    shape.Width = halved(shape.Width);
    shape.Height = halved(shape.Height);
    if ((shape.Flags & CUDA_ARRAY3D_LAYERED) == 0) shape.Depth = halved(shape.Depth);
  }
  return sum;
}

// The driver's own figure; 0 if it has none.
uint64_t asked_array(CUDA_ARRAY3D_DESCRIPTOR shape, CUdevice device) {
  if (!GPUROTA_HAS(cuArrayGetMemoryRequirements)) return 0;
  const RelaxedCapture relaxed;
  shape.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUarray array = nullptr;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  if (GPUROTA_OWN(cuArray3DCreate_v2)(relaxed, &array, &shape) != CUDA_SUCCESS) return 0;
  const CUresult result = GPUROTA_OWN(cuArrayGetMemoryRequirements)(&needs, array, device);
  GPUROTA_OWN(cuArrayDestroy)(relaxed, array);
  return result == CUDA_SUCCESS ? needs.size : 0;
}

uint64_t asked_mipmap(CUDA_ARRAY3D_DESCRIPTOR shape, unsigned levels, CUdevice device) {
  if (!GPUROTA_HAS(cuMipmappedArrayGetMemoryRequirements)) return 0;
  const RelaxedCapture relaxed;
  shape.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUmipmappedArray array = nullptr;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  if (GPUROTA_OWN(cuMipmappedArrayCreate)(relaxed, &array, &shape, levels) != CUDA_SUCCESS) {
    return 0;
  }
  const CUresult result = GPUROTA_OWN(cuMipmappedArrayGetMemoryRequirements)(&needs, array, device);
  GPUROTA_OWN(cuMipmappedArrayDestroy)(relaxed, array);
  return result == CUDA_SUCCESS ? needs.size : 0;
}

CUdevice current_device() {
  CUdevice device = 0;
  GPUROTA_OWN(cuCtxGetDevice)(&device);
  return device;
}

// `call` makes the array and fills in its handle. `levels` 0: not a mipmapped array.
template <typename Handle, typename Call>
CUresult create(Handle* out, const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels, Call call) {
  // An array with one of these flags gets its memory by cuMemMapArrayAsync; the handle of that
  // memory is charged.
  constexpr unsigned kWithoutMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
  const Place place = current_place();
  if ((shape.Flags & kWithoutMemory) != 0 || place.kind == Place::Kind::kNoContext) return call();
  if (place.kind == Place::Kind::kForeign) return refuse_elsewhere();
  uint64_t bytes = levels == 0 ? asked_array(shape, current_device())
                               : asked_mipmap(shape, levels, current_device());
  if (bytes == 0) bytes = most_bytes(shape, levels == 0 ? 1 : levels);
  const int64_t charge = most_for(bytes);
  const Answer answer = reserve(place.slot, charge);
  if (answer != Answer::kYes) return refuse(place.slot, bytes, answer);
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    put(place.slot, charge);
    return result;
  }
  State& s = state();
  count(&s.slots[place.slot].allocations);
  remember(s, reinterpret_cast<uint64_t>(*out),
           {static_cast<uint64_t>(charge), place.context, kArray, static_cast<uint8_t>(place.slot),
            false});
  return CUDA_SUCCESS;
}

template <typename Handle, typename Real>
CUresult destroy(Handle array, Real real) {
  State& s = state();
  const auto key = reinterpret_cast<uint64_t>(array);
  Allocation allocation{};
  const bool known = forget(s, key, &allocation);
  const CUresult result = real(array);
  if (result == CUDA_SUCCESS) {
    if (known) credit(s, key, allocation);
    int64_t credits[GPUROTA_SLOTS] = {};
    vmm_owner_gone(s, key, credits);
    put_all(credits);
  } else if (known) {
    remember(s, key, allocation);
  }
  return result;
}

CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY_DESCRIPTOR& shape) {
  return {shape.Width, shape.Height, 0, shape.Format, shape.NumChannels, 0};
}

CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY_DESCRIPTOR_v1& shape) {
  return {shape.Width, shape.Height, 0, shape.Format, shape.NumChannels, 0};
}

CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY3D_DESCRIPTOR_v1& shape) {
  return {shape.Width, shape.Height, shape.Depth, shape.Format, shape.NumChannels, shape.Flags};
}

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* shape) {
  GPUROTA_ENTER(cuArrayCreate_v2, out, shape);
  if (out == nullptr || shape == nullptr) return real(out, shape);
  return interposer::create(out, interposer::widened(*shape), 0, [=] { return real(out, shape); });
}

CUresult cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* shape) {
  GPUROTA_ENTER(cuArrayCreate, out, shape);
  if (out == nullptr || shape == nullptr) return real(out, shape);
  return interposer::create(out, interposer::widened(*shape), 0, [=] { return real(out, shape); });
}

CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  GPUROTA_ENTER(cuArray3DCreate_v2, out, shape);
  if (out == nullptr || shape == nullptr) return real(out, shape);
  return interposer::create(out, *shape, 0, [=] { return real(out, shape); });
}

CUresult cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape) {
  GPUROTA_ENTER(cuArray3DCreate, out, shape);
  if (out == nullptr || shape == nullptr) return real(out, shape);
  return interposer::create(out, interposer::widened(*shape), 0, [=] { return real(out, shape); });
}

CUresult cuArrayDestroy(CUarray array) {
  GPUROTA_ENTER(cuArrayDestroy, array);
  return interposer::destroy(array, real);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned int levels) {
  GPUROTA_ENTER(cuMipmappedArrayCreate, out, shape, levels);
  if (out == nullptr || shape == nullptr || levels == 0) return real(out, shape, levels);
  return interposer::create(out, *shape, levels, [=] { return real(out, shape, levels); });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  GPUROTA_ENTER(cuMipmappedArrayDestroy, array);
  return interposer::destroy(array, real);
}
