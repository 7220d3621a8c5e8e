#include "sys/user_names.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace gpurota::sys {

struct UserNames::Answer {
  std::mutex mutex;
  std::condition_variable given;
  bool is_given = false;            // guarded by mutex, as are the members below
  std::optional<std::string> name;  // none: nothing new is known
  std::optional<uid_t> owner;       // none: the uid itself

  void give(std::optional<std::string> text, std::optional<uid_t> of = std::nullopt) {
    const std::lock_guard lock(mutex);
    is_given = true;
    name = std::move(text);
    owner = of;
    given.notify_all();
  }
  bool wait(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex);
    return given.wait_for(lock, patience, [this] { return is_given; });
  }
};

UserNames::UserNames(ports::EventLoop& loop, std::shared_ptr<ports::Accounts> accounts)
    : loop_(loop), accounts_(std::move(accounts)), worker_(loop, "user names") {}

std::string UserNames::name_of(uid_t uid) { return look_up(uid).name; }

uid_t UserNames::owner_of(uid_t uid) { return look_up(uid).owner.value_or(uid); }

const UserNames::Known& UserNames::look_up(uid_t uid) {
  const TimePoint now = loop_.now();
  auto it = known_.find(uid);
  const bool is_new = it == known_.end();
  if (!is_new && (it->second.waits || now - it->second.asked < kFresh)) return it->second;
  if (is_new) {
    if (known_.size() >= kMostUsers) forget_oldest();
    it = known_.emplace(uid, Known{std::to_string(uid), {}, now}).first;
  }
  it->second.asked = now;
  it->second.waits = true;
  const bool answers = !last_ || last_->wait(std::chrono::milliseconds(0));
  last_ = std::make_shared<Answer>();
  worker_.run(
      [accounts = accounts_, uid, answer = last_] {
        const auto account = accounts->read_account(uid);
        if (account) {
          answer->give(account->name);
        } else if (account.error().code == Code::kNotFound) {
          answer->give(std::to_string(uid), accounts->read_subordinate_owner(uid));
        } else {
          answer->give(std::nullopt);
        }
        return answer;
      },
      [this, uid](const std::shared_ptr<Answer>& answer) {
        const auto known = known_.find(uid);
        if (known == known_.end()) return;
        known->second.waits = false;
        take(known->second, *answer);
      });
  if (is_new && answers && last_->wait(kPatience)) take(it->second, *last_);
  return it->second;
}

void UserNames::take(Known& known, const Answer& answer) {
  if (!answer.name) return;
  known.name = *answer.name;
  known.owner = answer.owner;
}

// The cache removes the oldest question first, so one user of many uids cannot push out others'
// names early.
void UserNames::forget_oldest() {
  known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
    return a.second.asked < b.second.asked;
  }));
}

}  // namespace gpurota::sys
