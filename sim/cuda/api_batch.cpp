// Batches: values written and waited for in stream order, and three-dimensional copies. The
// operations of a batch run in the order given, which is more than CUDA promises.
#include "sim/cuda/array.h"
#include "sim/cuda/copy.h"

using gpurota::sim::Call;
using gpurota::sim::CopyOp;
using gpurota::sim::CopySide;
using gpurota::sim::MemOp;
using gpurota::sim::StreamCall;

namespace {

CUresult give_value(CUstream stream, const CUstreamBatchMemOpParams& params) {
  StreamCall call(stream);
  if (call.failed()) return call.error();
  MemOp op;
  switch (params.operation) {
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return CUDA_SUCCESS;  // every write is visible to all at once
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      op.is_64_bit = true;
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  op.is_wait = params.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
               params.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  op.address = params.value.address;
  op.value = op.is_64_bit ? params.value.value64 : params.value.value64 & UINT32_MAX;
  op.flags = params.value.flags;
  if (op.address % (op.is_64_bit ? 8 : 4) != 0 || !call.driver().space.find(op.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return call.submit(op, StreamCall::Wait::kNo);
}

CUresult give_values(CUstream stream, unsigned count, const CUstreamBatchMemOpParams* list,
                     unsigned flags) {
  constexpr unsigned kMost = 256;
  if (list == nullptr || count > kMost || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUresult result = give_value(stream, list[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// One side of a copy whose elements have `element` bytes.
CopySide side_of(const Call& call, const CUmemcpy3DOperand& operand,
                 const CUDA_MEMCPY3D_BATCH_OP& copy, std::size_t element) {
  CopySide side;
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    side.array = call.driver().arrays.find(operand.op.array.array);
    side.x = operand.op.array.x * element;
    side.y = operand.op.array.y;
    side.z = operand.op.array.z;
  } else {
    const auto& at = operand.op.ptr;
    side.address = at.ptr;
    side.may_be_host = true;
    side.pitch = (at.rowLength != 0 ? at.rowLength : copy.extent.width) * element;
    side.height = at.layerHeight != 0 ? at.layerHeight : copy.extent.height;
  }
  return side;
}

// The element size of the array that takes part; 1 without an array.
std::size_t element_of(const Call& call, const CUDA_MEMCPY3D_BATCH_OP& copy) {
  for (const CUmemcpy3DOperand* operand : {&copy.src, &copy.dst}) {
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) continue;
    const auto* array = call.driver().arrays.find(operand->op.array.array);
    return array != nullptr ? array->element : 0;
  }
  return 1;
}

bool make_copy(const CUDA_MEMCPY3D_BATCH_OP& asked, CopyOp* out) {
  const Call call;
  const bool has_sense =
      asked.extent.width > 0 && asked.extent.height > 0 && asked.extent.depth > 0;
  const std::size_t element = call.failed() || !has_sense ? 0 : element_of(call, asked);
  if (element == 0) return false;
  out->from = side_of(call, asked.src, asked, element);
  out->to = side_of(call, asked.dst, asked, element);
  out->width = asked.extent.width * element;
  out->height = asked.extent.height;
  out->depth = asked.extent.depth;
  for (const CopySide* side : {&out->from, &out->to}) {
    if (side->array == nullptr && (side->address == 0 || side->pitch < out->width)) return false;
  }
  return true;
}

}  // namespace

GPUROTA_SIM_STREAM_API(cuStreamBatchMemOp, _ptsz,
                       (CUstream stream, unsigned count, CUstreamBatchMemOpParams* list,
                        unsigned flags),
                       (stream, count, list, flags)) {
  return give_values(stream, count, list, flags);
}

GPUROTA_SIM_STREAM_API(cuStreamBatchMemOp_v2, _ptsz,
                       (CUstream stream, unsigned count, CUstreamBatchMemOpParams* list,
                        unsigned flags),
                       (stream, count, list, flags)) {
  return give_values(stream, count, list, flags);
}

GPUROTA_SIM_STREAM_API(cuMemcpy3DBatchAsync_v2, _ptsz,
                       (std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags,
                        CUstream stream),
                       (count, list, flags, stream)) {
  if (list == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    CopyOp copy;
    if (!make_copy(list[i], &copy)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = give_copy(stream, copy, gpurota::sim::Timing::kAsync);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuMemcpy3DBatchAsync, _ptsz,
                       (std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, std::size_t* failed,
                        unsigned long long flags, CUstream stream),
                       (count, list, failed, flags, stream)) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return cuMemcpy3DBatchAsync_v2(count, list, flags, stream);
}
