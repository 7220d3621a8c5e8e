// The options common to the plugins, and value types that several of them use. Pure.
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
  std::string print;  // text to print before exiting
};

// All except --state-dir, whose default differs by plugin. `unit`: where the value of --memory-unit
// is stored.
std::vector<Option> plugin_rows(PluginOptions& options, Bytes& unit);

// Parses a whole number. kInvalid: the sentence names `option` and the allowed range.
Option::Take take_count(const char* option, int least, int most, std::function<void(int)> take);

}  // namespace gpurota::kube
