// The life of one job: when it is started, ended and started again. Pure: events and the time in,
// actions out; the daemon carries them out and tells what came of them.
//
//     stopped ─start→ waiting ─lease→ running ─ends→ backing off ─time→ waiting …
//                                        │                └→ finished, failed (not started again)
//                                        └─stop, timeout, over limit→ stopping ─ends→ …
//
// A job that waits for the end of others (jobs/chain.h) is chained until they have ended; then it
// waits, or is cancelled.
//
// A run that we end is sent TERM, and KILL when its grace is over; one whose lease ends (its time
// is over, it was released, it held more than its limit) is ended by that, and KILL is for what is
// left. Its reason is kept, whatever code it then exits with. `stop` is remembered: neither a
// reboot nor the end of a run starts it again.
#pragma once

#include "jobs/job.h"

namespace gpurota::jobs {

// kRelease is asked for after every run, and after a grant that came too late.
enum class Action { kRequestLease, kCancelRequest, kSpawn, kTerminate, kKill, kReleaseLease };
using Actions = std::vector<Action>;

struct Moment {
  TimePoint at;   // decides
  WallTime wall;  // is written down
};

struct Policy {
  RestartPolicy restart = RestartPolicy::kNo;
  Duration grace = std::chrono::seconds(10);
};

// What outlives the daemon. Times of `TimePoint` hold within one boot.
struct JobState {
  Phase phase = Phase::kStopped;
  int failures = 0;     // in a row; decides the back-off
  int brief = 0;        // runs that ended well, but at once, in a row: the same
  bool asking = false;  // kRunning: it has not come to its command yet, for want of a lease
  std::optional<TimePoint> running_since;
  std::optional<WallTime> started;      // of the current run, for people
  std::optional<EndReason> end_reason;  // kStopping: why
  std::string end_detail;               // kStopped: by whom, where that is not the owner
  // When the run that is on, or waits, was asked for; kept by one that has left for a booking.
  std::optional<WallTime> asked{};
  bool keeps_place = false;
  std::optional<Bytes> most_used{};  // by the lease of the run that is on, as in RunEnd
  bool start_again = false;          // kStopping: `restart`, or `start` meanwhile
  bool retries_items = false;        // an array: items that did not end well are to wait again
  bool removed = false;              // it goes as soon as its run is over
  std::vector<RunEnd> history;       // the newest last; at most kMaxHistory
};

class Supervision {
 public:
  static constexpr std::size_t kMaxHistory = 32;
  static constexpr Duration kFirstBackOff = std::chrono::seconds(1);
  static constexpr Duration kLongestBackOff = std::chrono::minutes(5);
  // A run as long as this was no false start: failures are counted anew.
  static constexpr Duration kGoodRun = std::chrono::minutes(10);
  // One that ended well after less was brief.
  static constexpr Duration kBriefRun = std::chrono::seconds(10);

  explicit Supervision(Policy policy) : policy_(policy) {}
  // As it was when the daemon was last there; then one of on_boot() and on_adopted() is called.
  Supervision(Policy policy, JobState state) : policy_(policy), state_(std::move(state)) {}

  const JobState& state() const { return state_; }
  // Holds for the run that is on, too (its timeout).
  void set_policy(Policy policy) { policy_ = policy; }

  // `by`: who does it, where that is not the owner: "by root (administrator): \"new fan\"".
  // `chained`: jobs that have to end before it have not.
  Actions start(Moment now, bool chained = false);
  Actions stop(Moment now, std::string by = {});
  Actions restart(Moment now, const std::string& by = {}, bool chained = false);
  // Stopped, and never started again; the job is to be dropped when there is no run of it any more.
  Actions remove(Moment now, std::string by = {});

  // Of a chained one: what it waits for has ended as it should, or has not.
  Actions on_chain_met();
  void on_chain_broken(std::string why);
  // No item of an array runs or is to start. `code`: the exit code of the array. `failed`: how many
  // items did not end well; empty: none.
  Actions on_items_over(Moment now, int code, std::string failed);
  // An array: whether items that did not end well are still to be made to wait again.
  void set_retries_items(bool retries) { state_.retries_items = retries; }
  // So much its lease uses now. Not stored by itself.
  void on_use(Bytes used);

  Actions on_lease(Moment now);
  Actions on_cannot_start(Moment now, std::string why);
  // The run is over: all its processes have ended. `signalled`: `code` is a signal.
  Actions on_exit(Moment now, int code, bool signalled);
  Actions on_exit_unseen(Moment now);
  // What was started has been waiting until now, and runs from now on.
  void on_held(Moment now);
  // Its lease is being ended, which ends its processes: there is nothing to do but to remember why.
  void on_over_limit(Moment now, std::string detail);
  void on_lease_lost(Moment now, std::string detail);
  void on_timeout(Moment now, std::string detail);
  // Its lease leaves for a booking: no failure, and a job that is started again waits in its old
  // place.
  void on_booking(Moment now, std::string detail);
  Actions on_time(Moment now);
  // Since when it counts as waiting, if that is not when it asks.
  std::optional<WallTime> place() const { return state_.keeps_place ? state_.asked : std::nullopt; }
  // When on_time() has something to do.
  std::optional<TimePoint> next_time() const;

  // A new daemon in the same boot: the run still runs, or (kWaiting, kBackingOff) there was none.
  Actions on_adopted(Moment now);
  // A new daemon in the same boot finds that the last one came no further than to note the start,
  // or that the run could not ask for its lease for want of a daemon.
  Actions on_never_began(Moment now);
  // A new boot: what ran, or waited to, is started again; call in the order of start_order().
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
  std::optional<TimePoint> due_;  // of the next start, or of KILL
  bool killed_ = false;
};

// How long to wait before the start after so many failures in a row (from 1).
Duration back_off(int failures);

}  // namespace gpurota::jobs
