#include "daemon/site_config.h"

#include "daemon/gpus/gpu_settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

using proto::ConfigSetting;
using proto::ConfigSource;

// Settings that `gpurota set` has made for a GPU, as settings of the GPU's section of the
// configuration.
std::vector<ConfigSetting> set_of(const GpuEntry& gpu, const ports::StoredGpuState& state) {
  const std::string name =
      gpu.info.parent.value.empty() ? std::to_string(gpu.info.index) : gpu.info.uuid.value;
  config::Config set;
  config::Turns::Gpu& chosen = set.turns.gpus[name];
  chosen = {state.capacity, config::parse_turns_mode(state.turns), state.quantum};
  std::vector<ConfigSetting> settings;
  for (const config::ShownSetting& each : config::shown_settings(set)) {
    if (!each.key.starts_with("turns.gpu.")) continue;
    ConfigSetting setting;
    setting.key = each.key;
    setting.value = each.value;
    setting.source = ConfigSource::kSet;
    settings.push_back(std::move(setting));
  }
  return settings;
}

void put(std::vector<ConfigSetting>& settings, ConfigSetting setting) {
  const auto at = std::lower_bound(
      settings.begin(), settings.end(), setting.key,
      [](const ConfigSetting& each, const std::string& key) { return each.key < key; });
  if (at != settings.end() && at->key == setting.key) {
    *at = std::move(setting);
  } else {
    settings.insert(at, std::move(setting));
  }
}

bool is_hidden(const std::string& key, const std::string& viewer) {
  return config::names_users(key) && !key.starts_with("limits.user." + viewer + ".");
}

}  // namespace

SiteConfig::SiteConfig(config::Loaded loaded, std::string file)
    : file_(std::move(file)), files_(std::move(loaded)), config_(files_.config) {}

std::vector<config::Change> SiteConfig::take_over(config::Loaded loaded) {
  std::vector<config::Change> changes =
      config::changes(config::shown_settings(config_), config::shown_settings(loaded.config));
  config::Config next = loaded.config;
  config::keep_until_restart(next, config_);
  config_ = std::move(next);
  files_ = std::move(loaded);
  return changes;
}

std::vector<config::Change> SiteConfig::pending() const {
  return config::changes(config::shown_settings(config_), config::shown_settings(files_.config));
}

std::string SiteConfig::summary() const {
  const bool has_main =
      std::find(files_.files.begin(), files_.files.end(), file_) != files_.files.end();
  const std::size_t drop_ins = files_.files.size() - (has_main ? 1 : 0);
  std::string text = has_main ? file_ : fmt::format("defaults ({} is not there)", file_);
  if (drop_ins > 0) {
    text += fmt::format(" and {} drop-in{}", drop_ins, drop_ins == 1 ? "" : "s");
  }
  return text;
}

proto::ConfigSetting SiteConfig::describe(const config::ShownSetting& setting) const {
  ConfigSetting described;
  described.key = setting.key;
  described.value = setting.value;
  described.default_value = setting.usual;
  const auto place = files_.places.find(setting.key);
  const bool written = place != files_.places.end();
  described.source = written ? ConfigSource::kFile : ConfigSource::kDefault;
  if (written) {
    described.file = place->second.file;
    described.line = place->second.line;
  }
  return described;
}

proto::ShowConfig::Reply SiteConfig::show(const GpuTable& gpus, const GpuStates& states,
                                          bool everything, const std::string& viewer) const {
  proto::ShowConfig::Reply reply;
  reply.file = file_;
  reply.files = files_.files;
  for (const config::ShownSetting& each : config::shown_settings(config_)) {
    if (!everything && is_hidden(each.key, viewer)) {
      ++reply.hidden;
    } else {
      reply.settings.push_back(describe(each));
    }
  }
  for (const config::Change& change : pending()) {
    for (ConfigSetting& setting : reply.settings) {
      if (setting.key == change.key) setting.at_restart = change.after;
    }
  }
  for (const GpuEntry& gpu : gpus.entries()) {
    for (ConfigSetting& setting : set_of(gpu, states.of(gpu.info.uuid))) {
      put(reply.settings, std::move(setting));
    }
  }
  return reply;
}

proto::ConfigChange proto_change(const config::Change& change) {
  return {change.key, change.before, change.after, change.takes_restart};
}

proto::ConfigProblem proto_problem(const config::Problem& problem) {
  proto::ConfigProblem described;
  if (!problem.place.file.empty()) described.file = problem.place.file;
  if (problem.place.line > 0) described.line = problem.place.line;
  if (!problem.key.empty()) described.key = problem.key;
  described.message = problem.what;
  return described;
}

}  // namespace gpurota::daemon
