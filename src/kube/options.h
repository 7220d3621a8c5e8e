// The command line of gpurota-device-plugin. Pure, except as in access_options.h.
#pragma once

#include "base/result.h"
#include "kube/api/access_options.h"
#include "kube/offer.h"
#include "kube/plugin_options.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

struct Options : PluginOptions {
  Options() { state_dir = "/var/lib/gpurota-kubernetes"; }

  std::map<Resource, std::string> names = {{Resource::kGpu, "gpurota.dev/gpu"},
                                           {Resource::kMemory, "gpurota.dev/memory"},
                                           {Resource::kTurn, "gpurota.dev/turn"}};
  Rules rules;
  std::optional<ApiOptions> api;  // where to write events of pods; empty: nowhere
};

// `words`: argv without argv[0].
Result<Options> parse_options(const std::vector<std::string>& words);

}  // namespace gpurota::kube
