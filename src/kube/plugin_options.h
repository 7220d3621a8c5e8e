// The options that the plugins have in common, and values that several of them take. Pure.
#pragma once

#include "base/bytes.h"
#include "base/log.h"
#include "base/options.h"
#include "kube/container_answer.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

struct PluginOptions {
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string state_dir;
  std::optional<std::string> runtime_dir;
  std::string host_root;
  GpuGiver giver = GpuGiver::kFiles;
  std::chrono::milliseconds interval{2000};
  log::Level log_level = log::Level::kInfo;
  std::string print;  // and be done
};

// All but --state-dir, whose default is each plugin's own. `unit`: where --memory-unit goes.
std::vector<Option> plugin_rows(PluginOptions& options, Bytes& unit);

// Takes a whole number. kInvalid: the sentence names `option` and what it takes.
Option::Take take_count(const char* option, int least, int most, std::function<void(int)> take);

}  // namespace gpurota::kube
