#include "cli/args/typed_options.h"

namespace gpurota::cli {

TypedOptions typed_options(const Raw& raw) {
  TypedOptions typed;
  const auto add = [](std::vector<std::string>& to, bool given, const char* name) {
    if (given) to.emplace_back(name);
  };
  add(typed.placement, raw.gpus.has_value(), "--gpus");
  add(typed.placement, !raw.gpu_ids.empty(), "--gpu-ids");
  add(typed.placement, raw.memory.has_value(), "--memory");
  add(typed.placement, raw.swap, "--swap");
  add(typed.placement, raw.oversize, "--oversize");
  add(typed.placement, raw.gpu_type.has_value(), "--gpu-type");
  add(typed.placement, raw.gpu_class.has_value(), "--gpu-class");
  add(typed.placement, raw.min_memory.has_value(), "--min-memory");
  add(typed.placement, raw.min_cc.has_value(), "--min-cc");
  add(typed.placement, raw.near.has_value(), "--near");
  add(typed.placement, raw.filler, "--filler");
  add(typed.of_lease, raw.name.has_value(), "--name");
  add(typed.of_lease, raw.note.has_value(), "--note");
  add(typed.of_lease, raw.as_.has_value(), "--as");
  add(typed.of_lease, raw.latency.has_value(), "--latency");
  add(typed.of_lease, raw.compute.has_value(), "--compute");
  add(typed.of_lease, raw.compute_max.has_value(), "--compute-max");
  add(typed.of_lease, raw.priority.has_value(), "--priority");
  add(typed.of_lease, raw.memory_threshold.has_value(), "--memory-threshold");
  typed.timeout = raw.timeout.has_value();
  typed.until = raw.until.has_value();
  return typed;
}

}  // namespace gpurota::cli
