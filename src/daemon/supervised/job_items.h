// The items of arrays, for Jobs: which of them are running, which starts next, and the states of
// the items that are not running. An array is a job without a run of its own: its life is kRunning
// from the start of its first item to the end of the last. An item that is running is a JobEntry,
// with its own life. Any other item has only a state (jobs/array.h). State thread only.
#pragma once

#include "daemon/supervised/job_rules.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// Whether this item, which was made to run, has ended or waits again.
bool is_at_rest(const JobEntry& item);

class JobItems {
 public:
  static constexpr Duration kPutOffPause = std::chrono::seconds(10);

  // All outlive the JobItems.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    Supervisor& supervisor;
    JobEntries& jobs;
    std::function<jobs::Moment()> now;
    std::function<jobs::Policy(const jobs::JobSpec&)> policy_of;
    // Carries out actions of a job or of an item.
    std::function<void(JobEntry&, const jobs::Actions&)> carry_out;
    std::function<void(std::uint64_t)> settle;
    // Takes over an item's run of this boot, which may still exist.
    std::function<Result<void>(JobEntry&)> take_up_run;
  };
  explicit JobItems(Parts parts) : parts_(std::move(parts)) {}

  // The items that run, by the numbers of their runs.
  JobEntries& runs() { return runs_; }
  const JobEntries& runs() const { return runs_; }
  // The job or the running item whose run has this number; nullptr: there is none.
  JobEntry* entry(std::uint64_t id);
  // The item of this index; nullptr: the item is not running.
  const JobEntry* find(const JobEntry& array, std::int64_t index) const;
  // The item that asks for its lease. There is at most one: the next item starts only when this
  // item has its lease.
  const JobEntry* asking_of(const JobEntry& array) const;
  // How many items are in each state. An item that asks for its lease counts as waiting.
  jobs::ItemCounts count(const JobEntry& array) const;

  enum class What { kStart, kStop, kRestart };
  Result<void> control(std::uint64_t array, std::int64_t index, What what, const std::string& by);
  // Makes the items that did not end well start again: soon, some at a time, even after a kill -9.
  Result<void> retry(std::uint64_t array);
  // Makes all items wait, as if none had begun.
  Result<void> reset(JobEntry& array);
  // Stops the items of an array that is being stopped, soon. When the array is started again, it
  // continues with these items.
  void stop(JobEntry& array);
  // Call when the spec of the array has changed: later starts use the new spec.
  void take_spec(JobEntry& array);

  // Takes the next step for the array soon, in a separate turn of the loop: starts the next item,
  // stops items, makes items wait again, or ends the array.
  void take_step_soon(JobEntry& array, Duration pause = {});
  // Call when the item of this run has ended or waits again: keeps its state and drops its
  // JobEntry.
  void put_to_rest(std::uint64_t run);
  // If `item` was refused, but may be granted later, lets the item wait and returns true. Its array
  // then starts no further item until another item has ended, the array is changed, or kPutOffPause
  // has passed. Call settle() next. In all other cases returns false and changes nothing.
  bool put_off(JobEntry& item);
  // Writes the item of this run to the store.
  Result<void> store(std::uint64_t run);
  // Removes the files of all items of the array, some at a time.
  void forget(const JobEntry& array);

  // After a start of the daemon: takes up an item as it was stored.
  Result<void> take_up(JobEntry& array, const ports::StoredItem& stored);
  // Call when all jobs and items are taken up.
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
