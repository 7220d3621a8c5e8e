#include "cli/site/config_text.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gpurota::cli {
namespace {

std::string origin(const proto::ConfigSetting& setting) {
  switch (setting.source) {
    case proto::ConfigSource::kDefault:
      return "default";
    case proto::ConfigSource::kSet:
      return "gpurota set";
    case proto::ConfigSource::kFile:
      return to_string(config::Place{setting.file.value_or("?"), setting.line.value_or(0)});
    case proto::ConfigSource::kUnknown:
      break;
  }
  return "?";
}

bool differs(const proto::ConfigSetting& setting) {
  return setting.value != setting.default_value || setting.at_restart;
}

}  // namespace

config::Problem problem_of(const proto::ConfigProblem& problem) {
  return {{problem.file.value_or(""), problem.line.value_or(0)},
          problem.key.value_or(""),
          problem.message};
}

config::Change change_of(const proto::ConfigChange& change) {
  return {change.key, change.before, change.after, change.takes_restart};
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

std::string changes_text(const std::vector<config::Change>& changes, bool would) {
  if (changes.empty()) return would ? "nothing would change" : "nothing has changed";
  std::string text;
  for (const config::Change& change : changes) {
    text += (text.empty() ? "" : "\n") + to_string(change);
  }
  return text;
}

std::string settings_text(const proto::ShowConfig::Reply& reply, bool changed,
                          const Layout& layout) {
  Table table({{.title = "SETTING"}, {.title = "VALUE", .least = 12}, {.title = "FROM"}});
  for (const proto::ConfigSetting& setting : reply.settings) {
    if (changed && !differs(setting)) continue;
    std::string from = origin(setting);
    if (setting.at_restart) from += fmt::format(", {} at the next restart", *setting.at_restart);
    table.add({{setting.key}, {setting.value}, {from}});
  }
  std::string text = table.empty() ? "every setting has its default\n" : table.render(layout);
  if (reply.hidden > 0) {
    text += reply.hidden == 1
                ? std::string("1 setting about other users is not shown\n")
                : fmt::format("{} settings about other users are not shown\n", reply.hidden);
  }
  return text;
}

std::vector<proto::ConfigSetting> changed_settings(const proto::ShowConfig::Reply& reply) {
  std::vector<proto::ConfigSetting> changed;
  std::copy_if(reply.settings.begin(), reply.settings.end(), std::back_inserter(changed), differs);
  return changed;
}

std::vector<config::Change> changes_of(const proto::ShowConfig::Reply& reply,
                                       const config::Config& config) {
  std::vector<config::ShownSetting> after = config::shown_settings(config);
  std::vector<config::ShownSetting> before;
  std::vector<std::string> kept;  // values of `gpurota set` stay in effect, whatever a file says
  for (const proto::ConfigSetting& setting : reply.settings) {
    if (setting.source == proto::ConfigSource::kSet) {
      kept.push_back(setting.key);
    } else {
      before.push_back({setting.key, setting.value, setting.default_value});
    }
  }
  std::erase_if(after, [&](const config::ShownSetting& setting) {
    const bool shown =
        std::any_of(before.begin(), before.end(),
                    [&](const config::ShownSetting& each) { return each.key == setting.key; });
    const bool hidden = reply.hidden > 0 && config::names_users(setting.key) && !shown;
    return hidden || std::find(kept.begin(), kept.end(), setting.key) != kept.end();
  });
  return config::changes(before, after);
}

}  // namespace gpurota::cli
