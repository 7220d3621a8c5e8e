// What a user may write for one GPU (an index, a UUID or its unique prefix, a PCI address) and which
// GPU that is. Pure.
#pragma once

#include "base/result.h"
#include "core/gpu.h"

#include <string_view>
#include <vector>

namespace gpurota::lease {

// kInvalid if `text` fits no GPU of `gpus` or more than one; the message lists what there is.
Result<GpuUuid> select_gpu(std::string_view text, const std::vector<GpuInfo>& gpus);

}  // namespace gpurota::lease
