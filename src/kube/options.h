// The command line of gpurota-device-plugin. Pure, but as access_options.h.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "kube/api/access_options.h"
#include "kube/container_answer.h"
#include "kube/offer.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace gpurota::kube {

extern const char* const kUsage;

struct Options {
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string state_dir = "/var/lib/gpurota-kubernetes";
  std::optional<std::string> runtime_dir;
  std::string host_root;
  std::map<Resource, std::string> names = {{Resource::kGpu, "gpurota.dev/gpu"},
                                           {Resource::kMemory, "gpurota.dev/memory"},
                                           {Resource::kTurn, "gpurota.dev/turn"}};
  Rules rules;
  GpuGiver giver = GpuGiver::kFiles;
  std::chrono::milliseconds interval{2000};
  std::optional<ApiOptions>
      api;  // where pods are told what becomes of their leases; empty: nowhere
  log::Level log_level = log::Level::kInfo;
  bool help = false;
  bool version = false;
};

Result<Options> parse_options(int argc, char* const* argv);

}  // namespace gpurota::kube
