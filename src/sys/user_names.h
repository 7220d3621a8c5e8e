// Names of users. State thread only. A name service may be a directory on the network, so a worker
// calls it; meanwhile the known names are used.
//
// For a new user the caller waits briefly, so that people see names and not numbers; but never
// while an earlier question is unanswered, so a service that hangs costs one such wait. Bounded.
#pragma once

#include "core/time.h"
#include "ports/accounts.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::sys {

class UserNames {
 public:
  static constexpr std::size_t kMostUsers = 4096;
  static constexpr Duration kFresh = std::chrono::minutes(1);
  // Long enough for a service on this machine while all its cores are busy.
  static constexpr std::chrono::milliseconds kPatience{250};

  // `accounts` is shared, because a call that hangs may outlive this object.
  UserNames(ports::EventLoop& loop, std::shared_ptr<ports::Accounts> accounts);

  // "alice"; the number if there is no such account, and until there is an answer.
  std::string name_of(uid_t uid);
  // The account to which a subordinate id belongs. For any other id, and until there is an answer,
  // `uid` itself.
  uid_t owner_of(uid_t uid);

 private:
  struct Answer;
  struct Known {
    std::string name;
    std::optional<uid_t> owner{};  // of a subordinate id
    TimePoint asked{};
    bool waits = true;  // for an answer
  };

  const Known& look_up(uid_t uid);
  static void take(Known& known, const Answer& answer);
  void forget_oldest();

  ports::EventLoop& loop_;
  std::shared_ptr<ports::Accounts> accounts_;
  std::map<uid_t, Known> known_;
  std::shared_ptr<Answer> last_;  // of the latest question; the worker answers in order
  Worker worker_;
};

}  // namespace gpurota::sys
