#include "core/notice_kind.h"

namespace gpurota {

const char* to_string(NoticeKind kind) {
  switch (kind) {
    case NoticeKind::kEndsSoon:
      return "ends_soon";
    case NoticeKind::kExpired:
      return "expired";
    case NoticeKind::kChanged:
      return "changed";
    case NoticeKind::kReleased:
      return "released";
    case NoticeKind::kStopped:
      return "stopped";
    case NoticeKind::kFinding:
      return "finding";
    case NoticeKind::kJobFailed:
      return "job_failed";
    case NoticeKind::kJobFinished:
      return "job_finished";
    case NoticeKind::kJobCancelled:
      return "job_cancelled";
    case NoticeKind::kRequestCancelled:
      return "request_cancelled";
    case NoticeKind::kBeginsSoon:
      return "begins_soon";
    case NoticeKind::kBegun:
      return "begun";
    case NoticeKind::kCannotBegin:
      return "cannot_begin";
    case NoticeKind::kLeavesSoon:
      return "leaves_soon";
    case NoticeKind::kTest:
      return "test";
  }
  return "";
}

std::optional<NoticeKind> parse_notice_kind(std::string_view word) {
  for (const NoticeKind kind : kNoticeKinds) {
    if (word == to_string(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace gpurota
