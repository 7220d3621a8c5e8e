// The users and groups that a configuration names: all of them, and those that the machine does not
// know. Pure: the caller looks them up, as that may take as long as a name service does.
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
// `daemon`: the uid that gpurotad runs as. Only root becomes the user of [notify].
std::vector<NamedAccount> named_accounts(const Loaded& loaded, uid_t daemon);

// How the machine's accounts are asked.
struct AccountQuestions {
  // kNotFound: there is none of this name.
  std::function<Result<void>(const NamedAccount& account)> find;
  // Names that may be proposed.
  std::function<std::vector<std::string>(bool groups)> list;
};
// "limits.user.alicce: no such user; did you mean alice?", at most kMostMistakes.
std::vector<Problem> unknown_accounts(const std::vector<NamedAccount>& accounts,
                                      const AccountQuestions& ask);

}  // namespace gpurota::config
