// The text of `gpurota reload` and `gpurota config`. Pure.
#pragma once

#include "cli/text/table.h"
#include "config/changes.h"
#include "config/loaded.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// Convert from the structs of the protocol.
config::Problem problem_of(const proto::ConfigProblem& problem);
config::Change change_of(const proto::ConfigChange& change);
// Convert to the structs of the protocol, for JSON.
proto::ConfigChange proto_change(const config::Change& change);
proto::ConfigProblem proto_problem(const config::Problem& problem);

// One line each, without a newline at the end; "nothing has changed" if there are none. `would`:
// nothing has been changed yet.
std::string changes_text(const std::vector<config::Change>& changes, bool would);

// A row for each setting. `changed`: only settings that differ from their defaults.
std::string settings_text(const proto::ShowConfig::Reply& reply, bool changed,
                          const Layout& layout);

// The settings that differ from their defaults.
std::vector<proto::ConfigSetting> changed_settings(const proto::ShowConfig::Reply& reply);

// The changes that a reload with `config` would make. Settings that the reply hides are left out.
std::vector<config::Change> changes_of(const proto::ShowConfig::Reply& reply,
                                       const config::Config& config);

}  // namespace gpurota::cli
