// The items of arrays, for Jobs: which of them run, which starts next, and what is known of those
// that do not run. An array is a job without a run of its own: its life is kRunning from the start
// of its first item to the end of the last. An item that runs is a JobEntry, with its own life; of
// the others there is their state (jobs/array.h). State thread only.
#pragma once

#include "daemon/supervised/job_rules.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class JobItems {
 public:
  // All outlive it.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    Supervisor& supervisor;
    JobEntries& jobs;
    std::function<jobs::Moment()> now;
    std::function<jobs::Policy(const jobs::JobSpec&)> policy_of;
    // Of a job or of an item.
    std::function<void(JobEntry&, const jobs::Actions&)> carry_out;
    std::function<void(std::uint64_t)> settle;
    // Of an item that may be on, in this boot.
    std::function<Result<void>(JobEntry&)> take_up_run;
  };
  explicit JobItems(Parts parts) : parts_(std::move(parts)) {}

  // Those that run, by the numbers of their runs.
  JobEntries& runs() { return runs_; }
  const JobEntries& runs() const { return runs_; }
  // A job, or an item that runs, by the number of its run; nullptr: there is none.
  JobEntry* entry(std::uint64_t id);
  // nullptr: it does not run.
  const JobEntry* find(const JobEntry& array, std::int64_t index) const;
  // The item that asks for its lease. There is one at most: the next one starts when it has it.
  const JobEntry* asking_of(const JobEntry& array) const;
  // The one that asks counts as waiting.
  jobs::ItemCounts count(const JobEntry& array) const;

  enum class What { kStart, kStop, kRestart };
  Result<void> control(std::uint64_t array, std::int64_t index, What what, const std::string& by);
  // Those that did not end well start again: soon, some at a time, also after a kill -9.
  Result<void> retry(std::uint64_t array);
  // All wait, as if none had begun.
  Result<void> reset(JobEntry& array);
  // The array is being stopped: so are its items, soon, and it goes on with these when it is
  // started.
  void stop(JobEntry& array);
  // The next starts are made of another spec.
  void take_spec(JobEntry& array);

  // Soon, as a step of its own, something is done that is to be done for the array: its next item
  // is started, items are stopped, or made to wait again, or the array ends.
  void take_step_soon(JobEntry& array, Duration pause = {});
  // An item that has ended.
  void put_to_rest(std::uint64_t run);
  // Writes it to the store.
  Result<void> store(std::uint64_t run);
  // Removes the files of all its items, some at a time.
  void forget(const JobEntry& array);

  // After a start of the daemon: what is known of an item.
  Result<void> take_up(JobEntry& array, const ports::StoredItem& stored);
  // All are taken up.
  void on_restored() { restored_ = true; }

 private:
  JobEntry& make(JobEntry& array, std::int64_t index);
  jobs::JobState resting_state(const JobEntry& array, jobs::JobState state) const;
  void take_step(std::uint64_t id);
  bool stop_some(JobEntry& array);
  void retry_some(JobEntry& array);
  ports::StoredItem row_of(std::int64_t index, const jobs::JobState& state) const;
  Result<std::optional<bool>> start_of(const JobEntry& array) const;
  Result<void> start_again(JobEntry& array, std::optional<bool> chained);
  void forget_some();

  Parts parts_;
  JobEntries runs_;
  std::vector<std::uint64_t> forgotten_;  // runs whose files are to be removed
  ports::EventLoop::SourcePtr forget_timer_;
  bool restored_ = false;
};

}  // namespace gpurota::daemon
