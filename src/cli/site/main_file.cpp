#include "cli/site/main_file.h"

#include "base/account_names.h"
#include "cli/args/program_commands.h"
#include "config/names.h"

#include <vector>

#include <unistd.h>

namespace gpurota::cli {

MainFile find_main_file(const Context& context, const std::optional<std::string>& named) {
  if (named) return {*named, true};
  const auto info = ask_daemon(context, proto::GetInfo{});
  std::string usual = client::default_config_file(context.location());
  if (!info || !info->config_file) return {std::move(usual), false};
  return {*info->config_file, *info->config_file != usual};
}

std::vector<config::Problem> read_unknown_accounts(const config::Loaded& loaded) {
  return config::unknown_accounts(
      config::named_accounts(loaded, ::geteuid()),
      {[](const config::NamedAccount& account) -> Result<void> {
         if (account.is_group) GPUROTA_TRY(read_gid(account.name));
         if (!account.is_group) GPUROTA_TRY(read_uid(account.name));
         return {};
       },
       [](bool groups) { return groups ? read_local_groups() : read_local_users(); }});
}

}  // namespace gpurota::cli
