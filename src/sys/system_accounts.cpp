#include "sys/system_accounts.h"

#include "base/account_names.h"
#include "base/name_service.h"

#include <fmt/core.h>

#include <fstream>
#include <sstream>

#include <grp.h>
#include <pwd.h>

namespace gpurota::sys {
namespace {

// The kernel allows a process 65536 groups.
constexpr std::size_t kMostGroups = 65536;

std::string read_group_name(gid_t gid) {
  std::string name;
  (void)ask_name_service([&](std::vector<char>& buffer) {
    group entry{};
    group* found = nullptr;
    const int r = ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
    if (r == 0 && found != nullptr) name = found->gr_name;
    return r;
  });
  return name.empty() ? std::to_string(gid) : name;
}

Result<std::vector<gid_t>> read_groups(const std::string& user, gid_t primary) {
  std::vector<gid_t> groups(64);
  for (;;) {
    int count = static_cast<int>(groups.size());
    const int r = ::getgrouplist(user.c_str(), primary, groups.data(), &count);
    if (r >= 0) {
      groups.resize(static_cast<std::size_t>(count));
      return groups;
    }
    if (groups.size() >= kMostGroups) return fail(Code::kLimit, "a user is in too many groups");
    groups.resize(groups.size() * 4);
  }
}

}  // namespace

Result<uid_t> SystemAccounts::read_uid(const std::string& name) { return gpurota::read_uid(name); }

Result<gid_t> SystemAccounts::read_gid(const std::string& name) { return gpurota::read_gid(name); }

std::vector<std::string> SystemAccounts::read_user_names() { return read_local_users(); }

std::vector<std::string> SystemAccounts::read_group_names() { return read_local_groups(); }

Result<ports::Account> SystemAccounts::read_account(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  gid_t primary = 0;
  ports::Account account;
  GPUROTA_TRY(ask_name_service([&](std::vector<char>& buffer) {
    const int r = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
    if (r == 0 && found != nullptr) {
      account.name = found->pw_name;
      primary = found->pw_gid;
    }
    return r;
  }));
  if (account.name.empty()) {
    return fail(Code::kNotFound, fmt::format("there is no user with uid {}", uid));
  }
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<gid_t> gids, read_groups(account.name, primary));
  account.groups.push_back({primary, read_group_name(primary)});
  for (const gid_t gid : gids) {
    if (gid != primary) account.groups.push_back({gid, read_group_name(gid)});
  }
  return account;
}

std::optional<uid_t> SystemAccounts::read_subordinate_owner(uid_t uid) {
  std::ifstream file("/etc/subuid");
  // Lines are LOGIN-OR-UID:FIRST:COUNT.
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string owner;
    std::uint64_t first = 0, count = 0;
    char colon = 0;
    if (!std::getline(fields, owner, ':') || !(fields >> first >> colon >> count)) continue;
    if (uid < first || uid - first >= count) continue;
    if (const auto known = read_uid(owner)) return *known;
  }
  return std::nullopt;
}

}  // namespace gpurota::sys
