// A worker for each user, for reads that the user's processes can delay as long as they like
// (process_image.h, command_lines.h). A user whose processes delay a read delays only reads of that
// user's processes. State thread only.
//
// A read that hangs forever costs its thread. There are at most kMost threads. An idle thread ends
// when a further user needs one; while all are busy, nothing is read for further users, which the
// log reports once.
#pragma once

#include "core/time.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <sys/types.h>

namespace gpurota::sys {

class UserWorkers {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kMostWaiting = 1024;  // reads of one user
  // A read that takes longer is logged. A further warning for the same user comes only after a read
  // of that user has ended.
  static constexpr Duration kPatience = std::chrono::seconds(5);
  // tidy() ends a worker that has been idle this long.
  static constexpr Duration kIdle = std::chrono::minutes(1);

  // `loop` must outlive this object. The threads are called `name`-UID; `what` is the log's name
  // for what the threads read.
  UserWorkers(ports::EventLoop& loop, std::string name, std::string what);
  // Ends all workers as ~Worker does, in the time of one.
  ~UserWorkers();
  UserWorkers(const UserWorkers&) = delete;
  UserWorkers& operator=(const UserWorkers&) = delete;

  // Like Worker::run, on the worker of `uid`. False: there is no free thread or queue place, and
  // neither function will ever run.
  template <class Job, class Done>
  bool run(uid_t uid, Job job, Done done) {
    Worker* const worker = find(uid);
    if (!worker) return false;
    worker->run(std::move(job), [this, uid, done = std::move(done)](auto result) {
      note_answer(uid);
      done(std::move(result));
    });
    return true;
  }
  // Ends the threads that have been idle for kIdle. Do not call it inside a `done`.
  void tidy();
  std::size_t size() const { return workers_.size(); }

 private:
  struct UserWorker {
    std::unique_ptr<Worker> worker;
    TimePoint used{};         // time of the last question
    TimePoint moved{};        // the last answer, or a later question put to an idle worker
    bool told_stuck = false;  // logged as stuck
  };

  Worker* find(uid_t uid);
  bool make_room();
  std::unique_ptr<Worker> make_worker(uid_t uid);
  void note_question(uid_t uid, UserWorker& user);
  void note_answer(uid_t uid);

  ports::EventLoop& loop_;
  const std::string name_, what_;
  std::map<uid_t, UserWorker> workers_;
  bool told_full_ = false;
};

}  // namespace gpurota::sys
