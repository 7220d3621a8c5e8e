// The site's classes of GPUs: which GPUs of this machine are in each class ([gpu.class.NAME]). No
// other code maps a class to GPUs. Pure; state thread only.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "core/gpu.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::daemon {

using GpuClasses = std::map<std::string, config::GpuClass>;

// The GPUs of a class; never empty. kInvalid: there is no such class (the message lists all), or
// this machine has no GPU of the class.
Result<std::vector<GpuUuid>> gpus_of_class(const GpuClasses& classes, const std::string& name,
                                           const std::vector<GpuInfo>& gpus);
// The names of the classes that the GPU is in.
std::vector<std::string> classes_of(const GpuClasses& classes, const GpuInfo& gpu,
                                    const std::vector<GpuInfo>& gpus);

}  // namespace gpurota::daemon
