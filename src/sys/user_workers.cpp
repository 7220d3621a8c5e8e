#include "sys/user_workers.h"

#include "base/log.h"

#include <algorithm>

namespace gpurota::sys {

UserWorkers::UserWorkers(ports::EventLoop& loop, std::string name, std::string what)
    : loop_(loop), name_(std::move(name)), what_(std::move(what)) {}

UserWorkers::~UserWorkers() {
  for (auto& [uid, user] : workers_) user.worker->ask_to_end();
}

Worker* UserWorkers::find(uid_t uid) {
  auto it = workers_.find(uid);
  if (it == workers_.end()) {
    std::unique_ptr<Worker> made = make_room() ? make_worker(uid) : nullptr;
    if (!made) {
      if (!std::exchange(told_full_, true)) {
        log::warn("reading " + what_ +
                      " stands still for too many users: nothing is read for further ones",
                  {{"uid", uid}, {"threads", workers_.size()}});
      }
      return nullptr;
    }
    told_full_ = false;
    it = workers_.emplace(uid, UserWorker{std::move(made)}).first;
  }
  UserWorker& user = it->second;
  note_question(uid, user);
  return user.worker->unfinished() < kMostWaiting ? user.worker.get() : nullptr;
}

// Ends the worker that has been idle longest, if all places are taken.
bool UserWorkers::make_room() {
  if (workers_.size() < kMost) return true;
  auto oldest = workers_.end();
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    if (it->second.worker->unfinished() != 0) continue;
    if (oldest == workers_.end() || it->second.used < oldest->second.used) oldest = it;
  }
  if (oldest == workers_.end()) return false;
  workers_.erase(oldest);
  return true;
}

std::unique_ptr<Worker> UserWorkers::make_worker(uid_t uid) {
  auto made = std::make_unique<Worker>(loop_, name_ + "-" + std::to_string(uid));
  return made->has_thread() ? std::move(made) : nullptr;
}

void UserWorkers::note_question(uid_t uid, UserWorker& user) {
  const TimePoint now = loop_.now();
  user.used = now;
  if (user.worker->unfinished() == 0) user.moved = now;
  if (user.told_stuck || now - user.moved < kPatience) return;
  user.told_stuck = true;
  log::warn("reading " + what_ + " takes long: nothing else is read for this user meanwhile",
            {{"uid", uid}});
}

void UserWorkers::note_answer(uid_t uid) {
  const auto it = workers_.find(uid);
  if (it == workers_.end()) return;
  it->second.moved = loop_.now();
  it->second.told_stuck = false;
}

void UserWorkers::tidy() {
  const TimePoint now = loop_.now();
  std::erase_if(workers_, [&](const auto& entry) {
    // Ending a worker that still reads would block.
    return entry.second.worker->unfinished() == 0 && now - entry.second.used >= kIdle;
  });
}

}  // namespace gpurota::sys
