// The users and groups that a configuration names: all of them, and those unknown to the machine.
// Pure: the caller looks up the accounts, because a lookup may take as long as a name service does.
#pragma once

#include "config/loaded.h"

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::config {

struct NamedAccount {
  Place place;
  std::string key;  // "limits.user.alice"
  std::string name;
  bool is_group = false;

  bool operator==(const NamedAccount&) const = default;
};
// `daemon`: the uid of gpurotad. The user of [notify] is included only if the daemon runs as root,
// because no other daemon uses it.
std::vector<NamedAccount> named_accounts(const Loaded& loaded, uid_t daemon);

// The functions that look up the machine's accounts.
struct AccountQuestions {
  // kNotFound: there is no account of this name.
  std::function<Result<void>(const NamedAccount& account)> find;
  // Names for suggestions.
  std::function<std::vector<std::string>(bool groups)> list;
};
// "limits.user.alicce: no such user; did you mean alice?", at most kMostMistakes.
std::vector<Problem> unknown_accounts(const std::vector<NamedAccount>& accounts,
                                      const AccountQuestions& ask);

}  // namespace gpurota::config
