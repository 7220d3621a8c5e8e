// What a waiting user reads: the other half of request_queue.cpp.
#include "base/text.h"
#include "lease/request_queue.h"

#include <fmt/format.h>

namespace gpurota::lease {
namespace {

std::string what_is_in_the_way(const NextFree& next, RequestId request) {
  const std::string user = display_text(next.user, 32);
  if (next.behind) {
    return fmt::format("GPU {} is kept for {} of {}, which {} first", next.gpu,
                       to_string(*next.behind), user, *next.behind < request ? "came" : "goes");
  }
  if (next.booking && !next.at) {
    return fmt::format("{} has booked GPU {} ({}), and the site lets reservations go on", user,
                       next.gpu, to_string(*next.booking));
  }
  if (next.booking) {
    return fmt::format("when {}'s booking of GPU {} ({}) is over", user, next.gpu,
                       to_string(*next.booking));
  }
  const char* const what = next.kind == LeaseKind::kRun ? "program" : to_string(next.kind);
  if (next.ending) return fmt::format("{}'s {} on GPU {} is just ending", user, what, next.gpu);
  if (next.at) return fmt::format("when {}'s {} on GPU {} ends", user, what, next.gpu);
  return fmt::format("it is not known when the next will be: {}'s {} ({}) on GPU {} {}", user, what,
                     to_string(*next.lease), next.gpu,
                     next.expired ? "is over, but its programs still use it" : "has no time limit");
}

}  // namespace

Reason waiting_reason(const Waiting& waiting) {
  if (!waiting.out_of_service.empty()) return {waiting.out_of_service, {}, {}};
  if (!waiting.planned_with) {
    return {fmt::format("{} requests are ahead of it", waiting.position - 1), {}, {}};
  }
  if (waiting.way_made) {
    return {fmt::format("a filler is leaving GPU {}", *waiting.way_made), {}, {}};
  }
  Reason reason;
  reason.text = fmt::format("{} of {} GPU{} free", waiting.free, waiting.wanted,
                            waiting.wanted == 1 ? "" : "s");
  if (!waiting.keeps && waiting.free > 0) reason.text += ", which others may have for now";
  if (!waiting.next) return reason;
  reason.next = what_is_in_the_way(*waiting.next, waiting.request);
  if (!waiting.next->behind && !waiting.next->ending) reason.next_at = waiting.next->at;
  return reason;
}

}  // namespace gpurota::lease
