// The configuration in effect, where each value comes from, and what a reload changes. State thread
// only; reads no file.
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
  // `loaded` must have no mistakes. `file`: the main file, which need not exist.
  SiteConfig(config::Loaded loaded, std::string file);
  // No copies and no moves: parts of the daemon keep references to config().
  SiteConfig(const SiteConfig&) = delete;
  SiteConfig& operator=(const SiteConfig&) = delete;

  // The configuration in effect. The reference stays valid as long as this object lives.
  const config::Config& config() const { return config_; }
  // The users and groups that the files name.
  std::vector<config::NamedAccount> named() const {
    return config::named_accounts(files_, ::geteuid());
  }

  // Puts `loaded`, which must have no mistakes, into effect. Settings that need a restart stay as
  // they are. Returns all changes, including those that wait for the restart.
  std::vector<config::Change> take_over(config::Loaded loaded);
  // Changes in the files that take effect at the next restart.
  std::vector<config::Change> pending() const;
  // "/etc/gpurota/gpurota.toml and 2 drop-ins".
  std::string summary() const;

  // All settings, including those that administrators have set for GPUs. Without `everything`,
  // settings that name users other than `viewer` are left out, and counted.
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
