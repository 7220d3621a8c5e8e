// Finds the GPU that a user's text names (an index, a UUID or its unique prefix, a PCI address),
// and makes the name of a GPU for people. Pure.
#pragma once

#include "base/result.h"
#include "core/gpu.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::lease {

// "0" for GPU 0, and "0:1" for the second MIG instance of GPU 0, because the index of an instance
// could be mistaken for that of a GPU. `parent`: the GPU of a MIG instance, null if unknown.
std::string name_of(const GpuInfo& gpu, const GpuInfo* parent);
std::string name_of(const GpuInfo& gpu, const std::vector<GpuInfo>& gpus);

// kInvalid if `text` matches no GPU of `gpus`, or more than one; the message lists the GPUs.
Result<GpuUuid> select_gpu(std::string_view text, const std::vector<GpuInfo>& gpus);

// Each GPU once, in the order of the names. "0-3": the GPUs of these indices. "all": every GPU of
// `gpus`, MIG instances included, except GPUs that are split into instances. kInvalid also for an
// empty list.
Result<std::vector<GpuUuid>> select_gpus(const std::vector<std::string>& names,
                                         const std::vector<GpuInfo>& gpus);

}  // namespace gpurota::lease
