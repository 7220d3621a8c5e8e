// A worker for each user, for reading what this user's processes can keep from being read for as
// long as they like (process_image.h, command_lines.h). A user who does that delays only reads of
// their own processes. State thread only.
//
// A read that hangs for good costs its thread. There are kMost threads at most; idle ones make way,
// and while all of them are busy nothing is read of further users. The log says so once.
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
  // A read that takes longer is told in the log, once for as long as that user's reads stand still.
  static constexpr Duration kPatience = std::chrono::seconds(5);
  // A worker with nothing to do is kept so long by tidy().
  static constexpr Duration kIdle = std::chrono::minutes(1);

  // `loop` must outlive this. The threads are called `name`-UID; `what` they read is for the log.
  UserWorkers(ports::EventLoop& loop, std::string name, std::string what);
  // As ~Worker, for all of them in the time of one.
  ~UserWorkers();
  UserWorkers(const UserWorkers&) = delete;
  UserWorkers& operator=(const UserWorkers&) = delete;

  // As Worker::run, on the worker of `uid`. False: it has no place, and neither function will ever
  // run.
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
  // Ends the threads that have had nothing to do for kIdle. Not inside a `done`.
  void tidy();
  std::size_t size() const { return workers_.size(); }

 private:
  struct UserWorker {
    std::unique_ptr<Worker> worker;
    TimePoint used{};         // last asked to read
    TimePoint moved{};        // its last answer, or the first question since it was idle
    bool told_stuck = false;  // in the log
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
