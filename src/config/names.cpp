#include "config/names.h"

#include "base/nearest.h"
#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace gpurota::config {
namespace {

class Collector {
 public:
  explicit Collector(const Loaded& loaded) : loaded_(loaded) {}

  void add(const std::string& key, const std::string& name, bool is_group) {
    if (!name.empty()) accounts.push_back({loaded_.place_of(key), key, name, is_group});
  }
  void add(const std::string& key, const std::vector<std::string>& names, bool is_group) {
    for (const std::string& name : names) add(key, name, is_group);
  }

  std::vector<NamedAccount> accounts;

 private:
  const Loaded& loaded_;
};

}  // namespace

std::vector<NamedAccount> named_accounts(const Loaded& loaded, uid_t daemon) {
  const Config& config = loaded.config;
  Collector named(loaded);
  named.add("group", config.group, true);
  named.add("admin_group", config.admin_group, true);
  for (const auto& [name, limits] : config.limits.users) {
    named.add("limits.user." + name, name, false);
  }
  for (const auto& [name, limits] : config.limits.groups) {
    named.add("limits.group." + name, name, true);
  }
  for (const auto& [name, weight] : config.fair_share.users) {
    named.add("fair_share.user." + name, name, false);
  }
  for (const auto& [name, weight] : config.fair_share.groups) {
    named.add("fair_share.group." + name, name, true);
  }
  for (const std::string& user : config.automatic.users) {
    const bool is_group = user.starts_with("@");
    named.add("automatic.users", is_group ? user.substr(1) : user, is_group);
  }
  for (std::size_t i = 0; i < config.watch.rules.size(); ++i) {
    const std::string key = fmt::format("watch.rule[{}]", i + 1);
    named.add(key, config.watch.rules[i].users, false);
    named.add(key, config.watch.rules[i].groups, true);
  }
  named.add("access.users", config.access.users, false);
  named.add("access.groups", config.access.groups, true);
  named.add("containers.owner", config.containers.owner, false);
  // notify.user is not used if no channel is set.
  const Notify& notify = config.notify;
  const bool sends = !notify.command.empty() || notify.mail || !notify.webhook.empty();
  if (sends && daemon == 0) named.add("notify.user", config.notify.user, false);
  return std::move(named.accounts);
}

std::vector<Problem> unknown_accounts(const std::vector<NamedAccount>& accounts,
                                      const AccountQuestions& ask) {
  std::vector<Problem> problems;
  std::array<std::optional<std::vector<std::string>>, 2> known;  // users, groups
  for (const NamedAccount& account : accounts) {
    if (problems.size() >= kMostMistakes) break;
    const auto found = ask.find(account);
    if (found) continue;
    const char* const kind = account.is_group ? "group" : "user";
    // The key of a list does not contain the name.
    const bool in_key = account.key.ends_with("." + account.name);
    const std::string subject =
        in_key ? std::string(kind) : fmt::format("{} '{}'", kind, display_text(account.name, 60));
    if (found.error().code != Code::kNotFound) {
      problems.push_back(
          {account.place, account.key,
           fmt::format("cannot look up the {}: {}", subject, found.error().message)});
      continue;
    }
    auto& names = known.at(account.is_group ? 1 : 0);
    if (!names) names = ask.list(account.is_group);
    const std::string meant = nearest_name(account.name, *names);
    std::string hint = meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant);
    if (account.name == Notify().user)
      hint = ": systemd-sysusers makes it, and nothing is sent until then";
    problems.push_back({account.place, account.key, fmt::format("no such {}{}", subject, hint)});
  }
  return problems;
}

}  // namespace gpurota::config
