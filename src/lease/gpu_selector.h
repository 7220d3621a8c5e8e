// Parses a user's word for one GPU (an index, a UUID or its unique prefix, a PCI address) and finds
// the GPU; also makes the name that people are shown. Pure.
#pragma once

#include "base/result.h"
#include "core/gpu.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::lease {

// "0"; a MIG instance is "0:1", the second one of GPU 0: its own index would be that of a GPU.
// `parent`: of a MIG instance the GPU it is part of, null if that is not known.
std::string name_of(const GpuInfo& gpu, const GpuInfo* parent);
std::string name_of(const GpuInfo& gpu, const std::vector<GpuInfo>& gpus);

// kInvalid if `text` fits no GPU of `gpus` or more than one; the message lists what there is.
Result<GpuUuid> select_gpu(std::string_view text, const std::vector<GpuInfo>& gpus);

// Each of them once, in the order they are named; "0-3": the GPUs of these indices; "all": every
// one but those that are split into instances, which are there themselves. kInvalid also of an
// empty list.
Result<std::vector<GpuUuid>> select_gpus(const std::vector<std::string>& names,
                                         const std::vector<GpuInfo>& gpus);

}  // namespace gpurota::lease
