// The command line of gpurota-dra. Pure, but as access_options.h.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "kube/api/access_options.h"
#include "kube/container_answer.h"
#include "kube/dra/slice.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::kube {

extern const char* const kDraUsage;

struct DraOptions {
  ApiOptions api;
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string state_dir = "/var/lib/gpurota-dra";
  std::string cdi_dir = "/var/run/cdi";
  std::optional<std::string> runtime_dir;
  std::string host_root;
  SliceRules rules;
  GpuGiver giver = GpuGiver::kFiles;
  std::chrono::milliseconds interval{2000};
  std::chrono::seconds review{60};
  log::Level log_level = log::Level::kInfo;
  bool help = false;
  bool version = false;
};

Result<DraOptions> parse_dra_options(int argc, char* const* argv);

}  // namespace gpurota::kube
