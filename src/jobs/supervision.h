// The life of one job: when it is started, ended and started again. Pure: takes events and the
// time, and returns actions. The daemon carries the actions out and reports their results.
//
//     stopped ─start→ waiting ─lease→ running ─ends→ backing off ─time→ waiting …
//                                        │                └→ finished, failed (not started again)
//                                        └─stop, timeout, over limit→ stopping ─ends→ …
//
// A job that waits for the end of others (jobs/chain.h) is chained until these have ended; then the
// job waits for its lease, or is cancelled.
//
// A run that is to end is sent TERM, and KILL when its grace is over. The end of the lease (its
// time is over, it was released, it held more than its limit) ends the run, too; KILL is then sent
// only to processes that are left. The reason is kept, whatever code the run then exits with.
// `stop` is remembered: neither a reboot nor the end of a run starts the job again.
#pragma once

#include "jobs/job.h"

namespace gpurota::jobs {

// kReleaseLease is returned after every run, and after a lease that came too late.
enum class Action { kRequestLease, kCancelRequest, kSpawn, kTerminate, kKill, kReleaseLease };
using Actions = std::vector<Action>;

struct Moment {
  TimePoint at;   // decides
  WallTime wall;  // is stored
};

struct Policy {
  RestartPolicy restart = RestartPolicy::kNo;
  Duration grace = std::chrono::seconds(10);
};

// The part of a job's life that is stored, and outlives the daemon. Times of type `TimePoint` are
// valid only within one boot.
struct JobState {
  Phase phase = Phase::kStopped;
  int failures = 0;     // failed runs in a row; decides the pause before the next start
  int brief = 0;        // runs in a row that ended well, but at once; decides the pause, too
  bool asking = false;  // kRunning: the run has no lease yet, and its command has not started
  std::optional<TimePoint> running_since;
  std::optional<WallTime> started;      // of the current run, for people
  std::optional<EndReason> end_reason;  // kStopping: why
  std::string end_detail;               // kStopped: by whom, where that is not the owner
  // When the present run, or the run that waits for its lease, was requested. A run that has left
  // for a booking keeps this time.
  std::optional<WallTime> asked{};
  bool keeps_place = false;
  std::optional<Bytes> most_used{};  // by the lease of the present run, as in RunEnd
  bool start_again = false;          // kStopping: by `restart`, or by a later `start`
  bool retries_items = false;        // an array: items that did not end well are to be retried
  bool removed = false;              // the job is dropped as soon as its run is over
  std::vector<RunEnd> history;       // the newest last; at most kMaxHistory
};

class Supervision {
 public:
  static constexpr std::size_t kMaxHistory = 32;
  static constexpr Duration kFirstBackOff = std::chrono::seconds(1);
  static constexpr Duration kLongestBackOff = std::chrono::minutes(5);
  // After a run as long as this, failures are counted anew.
  static constexpr Duration kGoodRun = std::chrono::minutes(10);
  // A run that ended well after less time was brief.
  static constexpr Duration kBriefRun = std::chrono::seconds(10);

  explicit Supervision(Policy policy) : policy_(policy) {}
  // The job as the last daemon stored it. Call on_boot() or on_adopted() next.
  Supervision(Policy policy, JobState state) : policy_(policy), state_(std::move(state)) {}

  const JobState& state() const { return state_; }
  // The policy also applies to the present run (its grace).
  void set_policy(Policy policy) { policy_ = policy; }

  // `by`: the user who does this, where that is not the owner: "by root (administrator): \"new
  // fan\"". `chained`: jobs that have to end first have not ended.
  Actions start(Moment now, bool chained = false);
  Actions stop(Moment now, std::string by = {});
  Actions restart(Moment now, const std::string& by = {}, bool chained = false);
  // Stops the job for good. Drop the job when no run of it is left.
  Actions remove(Moment now, std::string by = {});

  // A chained job: the jobs that it waits for have ended as required, or can no longer do so.
  Actions on_chain_met();
  void on_chain_broken(std::string why);
  // No item of an array runs or is to start. `code`: the exit code of the array. `failed`: how many
  // items did not end well; empty: none.
  Actions on_items_over(Moment now, int code, std::string failed);
  // An array: whether items that did not end well have yet to be retried.
  void set_retries_items(bool retries) { state_.retries_items = retries; }
  // The memory that the lease of the run uses now. The caller need not store the change.
  void on_use(Bytes used);

  Actions on_lease(Moment now);
  Actions on_cannot_start(Moment now, std::string why);
  // The run was refused something that the job can get later: the job waits, as if there had been
  // no run. False, and no change: the job does not ask for its lease.
  bool put_off();
  // The run is over: all its processes have ended. `signalled`: `code` is a signal.
  Actions on_exit(Moment now, int code, bool signalled);
  Actions on_exit_unseen(Moment now);
  // The run has been waiting for its lease until now, and its command starts.
  void on_held(Moment now);
  // The lease of the run is being ended, which also ends the run's processes: this call only notes
  // the reason.
  void on_over_limit(Moment now, std::string detail);
  void on_lease_lost(Moment now, std::string detail);
  void on_timeout(Moment now, std::string detail);
  // The lease of the run leaves for a booking, which is no failure. A job that is started again
  // waits in its old place.
  void on_booking(Moment now, std::string detail);
  Actions on_time(Moment now);
  // Since when the job counts as waiting, if that is earlier than its next request for a lease.
  std::optional<WallTime> place() const { return state_.keeps_place ? state_.asked : std::nullopt; }
  // The time when on_time() has something to do.
  std::optional<TimePoint> next_time() const;

  // A new daemon in the same boot: the run still runs, or (kWaiting, kBackingOff) there was none.
  Actions on_adopted(Moment now);
  // A new daemon in the same boot finds that the run never began: the last daemon only stored the
  // start, or the run found no daemon to ask for its lease.
  Actions on_never_began(Moment now);
  // A new boot: a job that ran or waited is started again. Call for jobs in the order of
  // start_order().
  Actions on_boot(Moment now);

 private:
  Actions request();
  Duration pause() const;
  // Whether there was a run to end.
  bool end_run(Moment now, EndReason reason, std::string detail);
  Actions ended(Moment now, RunEnd end);
  void remember(RunEnd end);
  void settle(Phase phase);

  Policy policy_;
  JobState state_;
  std::optional<TimePoint> due_;  // the time of the next start, or of KILL
  bool killed_ = false;
};

// The pause before the next start, after this many failures in a row (at least 1).
Duration back_off(int failures);

}  // namespace gpurota::jobs
