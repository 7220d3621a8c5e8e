#include "lease/reason.h"

#include "base/size_word.h"
#include "base/text.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>

namespace gpurota::lease {
namespace {

// The time at which the lease in the way ends; empty: unknown, or the lease is already ending.
std::optional<WallTime> known_end(const NextFree& next) {
  return next.ending ? std::nullopt : next.at;
}

// "bob's program (L7)".
std::string lease_words(const NextFree& next) {
  const char* const what = next.kind == LeaseKind::kRun ? "program" : to_string(next.kind);
  return fmt::format("{}'s {} ({})", display_text(next.user, 32), what, to_string(*next.lease));
}

// "R9 of alice".
std::string request_words(RequestId id, const std::string& user) {
  return fmt::format("{} of {}", to_string(id), display_text(user, 32));
}

std::string booking_words(RequestId id, const std::string& user) {
  return fmt::format("{}'s booking {}", display_text(user, 32), to_string(id));
}

// For one wanted GPU the sentence begins with the GPU. For several GPUs the sentence begins with
// how many are free, and a clause follows.
struct Sentence {
  std::string gpu;
  std::string counted;  // "3 of 8 GPUs are free for it; "; empty: one GPU is wanted

  std::string waits_for(std::string_view what, std::string_view how) const {
    return counted.empty() ? fmt::format("waits for GPU {}: {} {}", gpu, what, how)
                           : fmt::format("{}{} on GPU {} {}", counted, what, gpu, how);
  }
  std::string ends(std::string_view what, std::string_view of) const {
    return counted.empty() ? fmt::format("waits for GPU {}: {} ends at {}", gpu, what, kTimePlace)
                           : fmt::format("{}the next is expected at {}, when {} {} GPU {} ends",
                                         counted, kTimePlace, what, of, gpu);
  }
};

Sentence sentence_of(const Waiting& waiting, const std::string& gpu) {
  Sentence sentence{gpu, {}};
  if (waiting.wanted < 2) return sentence;
  const bool kept = waiting.keeps || waiting.free_now == 0;
  sentence.counted = fmt::format("{} of {} GPUs {} free for it{}; ", waiting.free_now,
                                 waiting.wanted, waiting.free_now == 1 ? "is" : "are",
                                 kept ? "" : ", and others may have them for now");
  return sentence;
}

Reason behind_another(const Waiting& waiting, const NextFree& next) {
  const std::string other = request_words(*next.behind, next.user);
  const Sentence sentence = sentence_of(waiting, next.gpu);
  if (!next.lease) {
    return {ReasonCode::kKept,
            fmt::format("{}GPU {} is kept for {}, which {} first", sentence.counted, next.gpu,
                        other, *next.behind < waiting.request ? "came" : "goes")};
  }
  const auto end = known_end(next);
  const std::string when = fmt::format("when {} ends{}{}", to_string(*next.lease),
                                       end ? " at " : "", end ? kTimePlace : "");
  return {ReasonCode::kBehindRequest,
          sentence.counted.empty()
              ? fmt::format("waits for GPU {}: {} gets it first, {}", next.gpu, other, when)
              : fmt::format("{}{} gets GPU {} first, {}", sentence.counted, other, next.gpu, when),
          end};
}

Reason behind_booking(const Waiting& waiting, const NextFree& next) {
  const std::string booking = booking_words(*next.booking, next.user);
  const Sentence sentence = sentence_of(waiting, next.gpu);
  if (next.at) return {ReasonCode::kBooked, sentence.ends(booking, "of"), next.at};
  return {ReasonCode::kBookedOpenEnded,
          sentence.waits_for(booking, "may go on when its time is over")};
}

Reason behind_lease(const Waiting& waiting, const NextFree& next) {
  const std::string lease = lease_words(next);
  const Sentence sentence = sentence_of(waiting, next.gpu);
  if (next.ending) return {ReasonCode::kEnding, sentence.waits_for(lease, "is ending")};
  if (next.at) return {ReasonCode::kLeasedUntil, sentence.ends(lease, "on"), next.at};
  if (next.expired) {
    return {ReasonCode::kExpiredInUse,
            sentence.waits_for(lease, "is over, but its programs still use it")};
  }
  return {ReasonCode::kLeasedOpenEnded, sentence.waits_for(lease, "has no time limit")};
}

// As many GPUs as wanted are free, but not for long enough.
Reason free_for_a_while(const Waiting& waiting) {
  const FreeUntil& until = *waiting.free_until;
  const std::string what = waiting.wanted == 1 ? fmt::format("GPU {} is", until.gpu)
                                               : fmt::format("{} GPUs are", waiting.wanted);
  const std::string then =
      until.booking ? booking_words(until.whose, until.user) + " begins"
                    : request_words(until.whose, until.user) + ", which goes first, starts there";
  return {ReasonCode::kFreeUntil, fmt::format("{} free until {}, then {}", what, kTimePlace, then),
          until.at};
}

// The reason if the request does not fit on a GPU because of what is promised to leases there, or
// because of use beyond the promises. Empty if neither is so, or if the lease in the way is ending
// or has a known end.
std::optional<Reason> too_full(const Waiting& waiting) {
  const bool ends = waiting.next && (waiting.next->at || waiting.next->ending);
  if (!waiting.crowded || ends) return std::nullopt;
  const Crowded& crowded = *waiting.crowded;
  const Sentence sentence = sentence_of(waiting, crowded.gpu);
  if (crowded.promised > crowded.capacity) {
    const std::string capacity = to_string(crowded.capacity);
    const std::string what =
        sentence.counted.empty()
            ? fmt::format("waits for GPU {}: its capacity of {} is", crowded.gpu, capacity)
            : fmt::format("{}the capacity of GPU {}, {}, is", sentence.counted, crowded.gpu,
                          capacity);
    return Reason{ReasonCode::kOverCapacity,
                  fmt::format("{} less than the {} that leases there may have", what,
                              to_string(crowded.promised))};
  }
  if (crowded.machine > crowded.outside - crowded.machine) {
    return Reason{ReasonCode::kMachineMemory,
                  sentence.waits_for(to_string(crowded.machine) + " of the machine's memory",
                                     "are used by other programs")};
  }
  return Reason{ReasonCode::kUnreservedUse,
                sentence.waits_for(to_string(crowded.outside), "are in use without a lease")};
}

// In the format of --timeout.
std::string time_option(std::chrono::seconds lasts) {
  const std::int64_t minutes = lasts.count() / 60;
  if (minutes < 60) return fmt::format("{}m", minutes);
  const std::string rest = minutes % 60 ? fmt::format("{}m", minutes % 60) : "";
  if (minutes < 1440) return fmt::format("{}h{}", minutes / 60, rest);
  const std::int64_t hours = minutes / 60 % 24;
  return fmt::format("{}d{}", minutes / 1440, hours ? fmt::format("{}h", hours) : "");
}

std::string option_of(const WayOut& way, LeaseKind kind) {
  switch (way.kind) {
    case WayOut::Kind::kTime:
      return fmt::format("with {} {}", kind == LeaseKind::kReservation ? "--for" : "--timeout",
                         time_option(way.lasts));
    case WayOut::Kind::kOtherGpus:
      return "without --gpu-ids";
    case WayOut::Kind::kMemory:
      return "with --memory " + size_word(way.memory);
    case WayOut::Kind::kSwap:
      return "with --swap";
    case WayOut::Kind::kCount:
      return fmt::format("with --gpus {}", way.count);
    case WayOut::Kind::kCompute:
      return way.compute != 0 ? fmt::format("with --compute {}%", way.compute)
                              : "without --compute";
  }
  return {};
}

}  // namespace

Reason waiting_reason(const Waiting& waiting) {
  if (!waiting.out_of_service.empty()) {
    return {ReasonCode::kOutOfService, waiting.out_of_service};
  }
  if (waiting.way_made) {
    return {ReasonCode::kFillerLeaving,
            fmt::format("a filler is leaving GPU {}", *waiting.way_made)};
  }
  if (waiting.free_until) return free_for_a_while(waiting);
  if (waiting.next && waiting.next->behind) return behind_another(waiting, *waiting.next);
  if (waiting.next && waiting.next->booking) return behind_booking(waiting, *waiting.next);
  if (auto reason = too_full(waiting)) return *std::move(reason);
  if (waiting.next) return behind_lease(waiting, *waiting.next);
  const int ahead = waiting.position - 1;
  return {ReasonCode::kBehindRequests,
          fmt::format("{} request{} ahead of it", ahead, ahead == 1 ? " is" : "s are")};
}

Reason refusal_reason(const Waiting& waiting, std::string_view obstacles) {
  Reason reason = waiting_reason(waiting);
  // The time until which GPUs are free is not a time at which one becomes free.
  if (obstacles.empty() || reason.code == ReasonCode::kFreeUntil) return reason;
  reason.text = obstacles;
  if (reason.time) reason.text += fmt::format("; the next is expected at {}", kTimePlace);
  return reason;
}

bool is_passing(const Reason& reason) {
  return reason.code == ReasonCode::kEnding || reason.code == ReasonCode::kUnreservedUse;
}

Reason booking_obstacle(const NextFree& next) {
  const std::string user = display_text(next.user, 32);
  if (next.booking && next.at) {
    return {ReasonCode::kBooked,
            fmt::format("{} has booked GPU {} ({}) until {}", user, next.gpu,
                        to_string(*next.booking), kTimePlace),
            next.at};
  }
  if (next.booking) {
    return {ReasonCode::kBookedOpenEnded,
            fmt::format("{} has booked GPU {} ({}), and the site lets reservations go on after "
                        "their time",
                        user, next.gpu, to_string(*next.booking))};
  }
  if (next.behind) {
    return {ReasonCode::kKept, fmt::format("GPU {} is kept for {}, which came first", next.gpu,
                                           request_words(*next.behind, next.user))};
  }
  const std::string lease = lease_words(next);
  if (next.at) {
    return {ReasonCode::kLeasedUntil,
            fmt::format("{} on GPU {} ends at {}", lease, next.gpu, kTimePlace), next.at};
  }
  return {ReasonCode::kLeasedOpenEnded,
          fmt::format("{} on GPU {} has no time limit", lease, next.gpu)};
}

Reason impossible_reason(const Error& error) { return {ReasonCode::kOutOfService, error.message}; }

Reason cannot_start_reason(const Error& error) { return {ReasonCode::kCannotStart, error.message}; }

std::string remedy_text(const std::vector<WayOut>& ways, LeaseKind kind) {
  std::string text;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const bool is_last = i + 1 == ways.size();
    text += (i == 0 ? "starts now " : is_last ? " or " : ", ") + option_of(ways[i], kind);
  }
  return text;
}

}  // namespace gpurota::lease
