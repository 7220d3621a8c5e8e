// Kinds of notices to the owner of a lease: the words of `[notify] events` in gpurota.toml and of
// `what` in the JSON that programs get. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace gpurota {

enum class NoticeKind {
  kEndsSoon,          // the time of the lease is over soon
  kExpired,           // the time of the lease is over
  kChanged,           // another user has changed it
  kReleased,          // another user has ended it
  kStopped,           // a rule of the site has ended it: a limit, an unused GPU
  kFinding,           // the watch has found something that concerns the user
  kJobFailed,         // a job has failed and is not started again
  kJobFinished,       // a job has ended without an error and is not started again
  kJobCancelled,      // a job is never started, because of how another one ended
  kRequestCancelled,  // another user has removed a request from the queue, or cancelled a booking
  kBeginsSoon,        // a booking begins soon
  kBegun,             // a booking has begun: it is a reservation now
  // A lease without a time limit leaves when a booking of its GPUs is used, which may be soon.
  kLeavesSoon,
  kCannotBegin,  // the time of a booking has come, or comes soon, and its GPUs are not available
  kTest,         // gpurota notify --test
};

// All kinds that can be chosen; a test is always sent.
inline constexpr std::array kNoticeKinds = {
    NoticeKind::kEndsSoon,         NoticeKind::kExpired,     NoticeKind::kChanged,
    NoticeKind::kReleased,         NoticeKind::kStopped,     NoticeKind::kFinding,
    NoticeKind::kJobFailed,        NoticeKind::kJobFinished, NoticeKind::kJobCancelled,
    NoticeKind::kRequestCancelled, NoticeKind::kBeginsSoon,  NoticeKind::kBegun,
    NoticeKind::kCannotBegin,      NoticeKind::kLeavesSoon};
inline constexpr std::size_t kNoticeKindCount = kNoticeKinds.size() + 1;

// "ends_soon", "job_failed", …: stable.
const char* to_string(NoticeKind kind);
std::optional<NoticeKind> parse_notice_kind(std::string_view word);  // without the test

}  // namespace gpurota
