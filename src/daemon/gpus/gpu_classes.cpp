#include "daemon/gpus/gpu_classes.h"

#include "base/nearest.h"
#include "base/text.h"
#include "core/compute_capability.h"
#include "core/gpu_wishes.h"
#include "lease/gpu_selector.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

// A name that fits no GPU of this machine is ignored. A MIG instance is in the classes of its GPU.
bool is_named(const std::vector<std::string>& names, const GpuInfo& gpu,
              const std::vector<GpuInfo>& gpus) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto uuid = lease::select_gpu(name, gpus);
    return uuid && (*uuid == gpu.uuid || *uuid == gpu.parent);
  });
}

bool is_in(const config::GpuClass& rule, const GpuInfo& gpu, const std::vector<GpuInfo>& gpus) {
  GpuWishes wishes;
  wishes.type = rule.type;
  wishes.min_memory = rule.min_memory;
  if (!rule.min_cc.empty()) wishes.min_cc = parse_compute_capability(rule.min_cc).value_or(0);
  return is_of_kind(wishes, gpu) && (rule.gpus.empty() || is_named(rule.gpus, gpu, gpus));
}

Error no_such_class(const GpuClasses& classes, const std::string& name) {
  const std::string asked = display_text(name, 64);
  if (classes.empty()) {
    return {Code::kInvalid, 0,
            fmt::format("there is no class '{}' of GPUs: the site has none (gpurota.toml(5), "
                        "GPU CLASSES)",
                        asked)};
  }
  std::vector<std::string> names;
  for (const auto& [known, rule] : classes) names.push_back(known);
  const std::string meant = nearest_name(name, names);
  return {Code::kInvalid, 0,
          fmt::format("there is no class '{}' of GPUs: the site has {}{}", asked,
                      display_text(fmt::format("{}", fmt::join(names, ", ")), 400),
                      meant.empty() ? "" : fmt::format("; did you mean {}?", meant))};
}

}  // namespace

Result<std::vector<GpuUuid>> gpus_of_class(const GpuClasses& classes, const std::string& name,
                                           const std::vector<GpuInfo>& gpus) {
  const auto known = classes.find(name);
  if (known == classes.end()) return tl::unexpected(no_such_class(classes, name));
  std::vector<GpuUuid> found;
  for (const GpuInfo& gpu : gpus) {
    if (is_in(known->second, gpu, gpus)) found.push_back(gpu.uuid);
  }
  if (found.empty()) {
    return fail(Code::kInvalid, fmt::format("this machine has no GPU of class '{}', as the site "
                                            "describes it (gpurota config show)",
                                            display_text(name, 64)));
  }
  return found;
}

std::vector<std::string> classes_of(const GpuClasses& classes, const GpuInfo& gpu,
                                    const std::vector<GpuInfo>& gpus) {
  std::vector<std::string> names;
  for (const auto& [name, rule] : classes) {
    if (is_in(rule, gpu, gpus)) names.push_back(name);
  }
  return names;
}

}  // namespace gpurota::daemon
