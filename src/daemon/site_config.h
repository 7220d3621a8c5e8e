// The configuration in effect, where each value comes from, and what a reload makes of the files.
// State thread only; reads no file.
#pragma once

#include "config/changes.h"
#include "config/loaded.h"
#include "config/names.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

#include <unistd.h>

namespace gpurota::daemon {

class SiteConfig {
 public:
  // `loaded`: without mistakes. `file`: the main one, which need not be there.
  SiteConfig(config::Loaded loaded, std::string file);
  // Parts of the daemon refer to config().
  SiteConfig(const SiteConfig&) = delete;
  SiteConfig& operator=(const SiteConfig&) = delete;

  // In effect; at the same place for as long as this lives.
  const config::Config& config() const { return config_; }
  // The users and groups that the files name.
  std::vector<config::NamedAccount> named() const {
    return config::named_accounts(files_, ::geteuid());
  }

  // Takes over what the files say, which have no mistakes; what has changed, or will at the next
  // restart.
  std::vector<config::Change> take_over(config::Loaded loaded);
  // Changes in the files that take effect at the next restart.
  std::vector<config::Change> pending() const;
  // "/etc/gpurota/gpurota.toml and 2 drop-ins".
  std::string summary() const;

  // With what administrators have set of GPUs. Without `everything`, what names users other than
  // `viewer` is left out.
  proto::ShowConfig::Reply show(const GpuTable& gpus, const GpuStates& states, bool everything,
                                const std::string& viewer) const;

 private:
  proto::ConfigSetting describe(const config::ShownSetting& setting) const;

  std::string file_;
  config::Loaded files_;  // as they were read last
  config::Config config_;
};

proto::ConfigChange proto_change(const config::Change& change);
proto::ConfigProblem proto_problem(const config::Problem& problem);

}  // namespace gpurota::daemon
