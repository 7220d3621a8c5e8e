#include "jobs/supervision.h"

#include <algorithm>
#include <utility>

namespace gpurota::jobs {

Duration back_off(int failures) {
  Duration wait = Supervision::kFirstBackOff;
  for (int i = 1; i < failures && wait < Supervision::kLongestBackOff; ++i) wait *= 2;
  return std::min(wait, Supervision::kLongestBackOff);
}

Duration Supervision::pause() const { return back_off(std::max(state_.failures, state_.brief)); }

Actions Supervision::request() {
  settle(Phase::kWaiting);
  return {Action::kRequestLease};
}

void Supervision::settle(Phase phase) {
  state_.phase = phase;
  state_.running_since.reset();
  state_.started.reset();
  state_.end_reason.reset();
  state_.end_detail.clear();
  state_.start_again = false;
  state_.asking = false;
  state_.most_used.reset();
  due_.reset();
  killed_ = false;
}

Actions Supervision::start(Moment, bool chained) {
  if (state_.removed) return {};
  switch (state_.phase) {
    case Phase::kChained:
    case Phase::kWaiting:
    case Phase::kRunning:
      return {};
    case Phase::kStopping:
      state_.start_again = true;
      return {};
    case Phase::kStopped:
    case Phase::kBackingOff:
    case Phase::kFinished:
    case Phase::kFailed:
    case Phase::kCancelled:
      break;
  }
  state_.failures = state_.brief = 0;
  state_.keeps_place = false;
  if (!chained) return request();
  settle(Phase::kChained);
  return {};
}

Actions Supervision::stop(Moment now, std::string by) {
  switch (state_.phase) {
    case Phase::kWaiting:
      settle(Phase::kStopped);
      state_.end_detail = std::move(by);
      return {Action::kCancelRequest};
    case Phase::kRunning:
      (void)end_run(now, EndReason::kStopped, std::move(by));
      return {Action::kTerminate};
    case Phase::kStopping:
      // Whatever the reason of the end is, the job is not to start again.
      if (state_.end_reason != EndReason::kStopped || state_.start_again) {
        state_.end_detail = std::move(by);
      }
      state_.start_again = false;
      state_.end_reason = EndReason::kStopped;
      return {};
    case Phase::kStopped:
      return {};
    case Phase::kBackingOff:
    case Phase::kFinished:
    case Phase::kFailed:
    case Phase::kChained:
    case Phase::kCancelled:
      break;
  }
  settle(Phase::kStopped);
  state_.end_detail = std::move(by);
  return {};
}

Actions Supervision::restart(Moment now, const std::string& by, bool chained) {
  if (state_.phase != Phase::kRunning || state_.removed) return start(now, chained);
  (void)end_run(now, EndReason::kStopped, "to be restarted" + (by.empty() ? by : " " + by));
  state_.start_again = true;
  return {Action::kTerminate};
}

Actions Supervision::remove(Moment now, std::string by) {
  state_.removed = true;
  return stop(now, std::move(by));
}

Actions Supervision::on_chain_met() {
  if (state_.phase != Phase::kChained) return {};
  return request();
}

void Supervision::on_chain_broken(std::string why) {
  if (state_.phase != Phase::kChained) return;
  settle(Phase::kCancelled);
  state_.end_detail = std::move(why);
}

void Supervision::on_use(Bytes used) {
  const bool is_on = state_.phase == Phase::kRunning || state_.phase == Phase::kStopping;
  if (is_on) state_.most_used = std::max(state_.most_used.value_or(Bytes(0)), used);
}

Actions Supervision::on_lease(Moment now) {
  if (state_.phase != Phase::kWaiting) return {Action::kReleaseLease};
  state_.phase = Phase::kRunning;
  state_.asking = true;
  if (!state_.keeps_place) state_.asked = now.wall;
  state_.running_since = now.at;
  state_.started = now.wall;
  return {Action::kSpawn};
}

Actions Supervision::on_cannot_start(Moment now, std::string why) {
  if (state_.phase != Phase::kRunning && state_.phase != Phase::kStopping) return {};
  return ended(now, RunEnd{std::nullopt, now.wall, EndReason::kCannotStart, 0, std::move(why)});
}

bool Supervision::put_off() {
  if (state_.phase != Phase::kRunning || !state_.asking) return false;
  settle(Phase::kWaiting);
  return true;
}

Actions Supervision::on_exit(Moment now, int code, bool signalled) {
  if (state_.phase != Phase::kRunning && state_.phase != Phase::kStopping) return {};
  RunEnd end{state_.started, now.wall, signalled ? EndReason::kSignalled : EndReason::kExited, code,
             state_.end_detail};
  if (state_.end_reason) end.reason = *state_.end_reason;
  return ended(now, std::move(end));
}

Actions Supervision::on_items_over(Moment now, int code, std::string failed) {
  if (state_.phase == Phase::kStopping) return on_exit_unseen(now);
  if (state_.phase != Phase::kRunning) return {};
  return ended(now, RunEnd{state_.started, now.wall, EndReason::kExited, code, std::move(failed)});
}

Actions Supervision::on_exit_unseen(Moment now) {
  if (state_.phase != Phase::kRunning && state_.phase != Phase::kStopping) return {};
  return ended(now, RunEnd{state_.started, now.wall,
                           state_.end_reason.value_or(EndReason::kUnknown), 0, state_.end_detail});
}

void Supervision::on_held(Moment now) {
  if (state_.phase != Phase::kRunning) return;
  state_.asking = false;
  state_.running_since = now.at;
  state_.started = now.wall;
}

void Supervision::on_over_limit(Moment now, std::string detail) {
  (void)end_run(now, EndReason::kOverLimit, std::move(detail));
}

void Supervision::on_lease_lost(Moment now, std::string detail) {
  (void)end_run(now, EndReason::kLeaseLost, std::move(detail));
}

void Supervision::on_timeout(Moment now, std::string detail) {
  (void)end_run(now, EndReason::kTimeout, std::move(detail));
}

void Supervision::on_booking(Moment now, std::string detail) {
  (void)end_run(now, EndReason::kBooking, std::move(detail));
}

bool Supervision::end_run(Moment now, EndReason reason, std::string detail) {
  if (state_.phase != Phase::kRunning) return false;
  state_.phase = Phase::kStopping;
  state_.end_reason = reason;
  state_.end_detail = std::move(detail);
  due_ = now.at + policy_.grace;
  killed_ = false;
  return true;
}

Actions Supervision::on_time(Moment now) {
  const auto due = next_time();
  if (!due || now.at < *due) return {};
  if (state_.phase == Phase::kBackingOff) return request();
  killed_ = true;
  return {Action::kKill};
}

std::optional<TimePoint> Supervision::next_time() const {
  if (state_.phase == Phase::kBackingOff) return due_;
  if (state_.phase == Phase::kStopping && !killed_) return due_;
  return std::nullopt;
}

void Supervision::remember(RunEnd end) {
  end.most_used = state_.most_used;
  state_.history.push_back(std::move(end));
  if (state_.history.size() > kMaxHistory) state_.history.erase(state_.history.begin());
}

// A run is over, for the reason in `end`: starts the job again, or settles it.
Actions Supervision::ended(Moment now, RunEnd end) {
  const bool success = end.is_success();
  const EndReason reason = end.reason;
  const bool again = state_.start_again;
  const bool was_good = state_.running_since && now.at - *state_.running_since >= kGoodRun;
  const bool was_brief =
      success && state_.running_since && now.at - *state_.running_since < kBriefRun;
  const bool left = reason == EndReason::kBooking;
  state_.keeps_place = left && !again && policy_.restart != RestartPolicy::kNo;
  std::string detail = end.detail;
  remember(std::move(end));

  Actions actions = {Action::kReleaseLease};
  if (again || state_.keeps_place) {
    state_.failures = state_.brief = 0;
    const Actions more = request();
    actions.insert(actions.end(), more.begin(), more.end());
    return actions;
  }
  // kLeaseLost: usually because somebody took the lease away, and a restart of the job would take
  // the GPU again.
  const bool ours = reason == EndReason::kStopped || reason == EndReason::kLeaseLost || left;
  if (ours) {
    settle(Phase::kStopped);
    state_.end_detail = std::move(detail);
    return actions;
  }
  const bool restarts = policy_.restart == RestartPolicy::kAlways ||
                        (policy_.restart == RestartPolicy::kOnFailure && !success);
  state_.failures = success || was_good ? 0 : state_.failures + 1;
  state_.brief = was_brief ? state_.brief + 1 : 0;
  if (!restarts) {
    settle(success ? Phase::kFinished : Phase::kFailed);
    return actions;
  }
  settle(Phase::kBackingOff);
  due_ = now.at + pause();
  return actions;
}

Actions Supervision::on_adopted(Moment now) {
  switch (state_.phase) {
    case Phase::kWaiting:
      return {Action::kRequestLease};
    case Phase::kBackingOff:
      due_ = now.at + pause();
      return {};
    case Phase::kStopping:
      // The last daemon may have sent the signal or not; a second one does no harm.
      due_ = now.at + policy_.grace;
      return {Action::kTerminate};
    case Phase::kRunning:
    case Phase::kStopped:
    case Phase::kFinished:
    case Phase::kFailed:
    case Phase::kChained:
    case Phase::kCancelled:
      break;
  }
  return {};
}

Actions Supervision::on_never_began(Moment now) {
  if (state_.phase == Phase::kRunning) return request();
  return on_exit_unseen(now);
}

Actions Supervision::on_boot(Moment now) {
  if (state_.removed) return {};
  switch (state_.phase) {
    case Phase::kRunning:
      remember(RunEnd{state_.started, now.wall, EndReason::kReboot, 0, ""});
      break;
    case Phase::kStopping: {
      // The run was being ended: the job continues as it would have after that end.
      const bool again = state_.start_again;
      const EndReason reason = state_.end_reason.value_or(EndReason::kReboot);
      (void)ended(now, RunEnd{state_.started, now.wall, reason, 0, state_.end_detail});
      if (again || state_.phase == Phase::kWaiting) break;
      return {};
    }
    case Phase::kWaiting:
    case Phase::kBackingOff:
      break;
    case Phase::kStopped:
    case Phase::kFinished:
    case Phase::kFailed:
    case Phase::kChained:
    case Phase::kCancelled:
      return {};
  }
  state_.failures = state_.brief = 0;
  return request();
}

}  // namespace gpurota::jobs
