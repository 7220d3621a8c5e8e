// The command line of gpurota-dra. Pure, except as in access_options.h.
#pragma once

#include "base/result.h"
#include "kube/api/access_options.h"
#include "kube/dra/slice.h"
#include "kube/plugin_options.h"

#include <chrono>
#include <string>
#include <vector>

namespace gpurota::kube {

struct DraOptions : PluginOptions {
  DraOptions() { state_dir = "/var/lib/gpurota-dra"; }

  ApiOptions api;
  std::string cdi_dir = "/var/run/cdi";
  SliceRules rules;
  std::chrono::seconds review{60};
};

// `words`: argv without argv[0].
Result<DraOptions> parse_dra_options(const std::vector<std::string>& words);

}  // namespace gpurota::kube
