// Why somebody waits, as the daemon says it and every client shows it: one whole sentence, with a
// place for a time where one is known. Plain data, and the one function that fills the time in.
//
// Sentences are made in two files alone: lease/reason.cpp (requests and bookings) and
// filler/place_reason.cpp (fillers). tools/check_reasons.py sees to it that no client joins or
// makes its own.
#pragma once

#include "core/time.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota {

// Words of the interface (dev.gpurota.varlink, ReasonCode), which lists what each means; stable.
enum class ReasonCode {
  // Of requests, and of bookings whose time has come.
  kOutOfService,
  kBehindRequests,
  kBehindRequest,
  kKept,
  kLeasedUntil,
  kLeasedOpenEnded,
  kEnding,
  kExpiredInUse,
  kBooked,
  kBookedOpenEnded,
  kFreeUntil,
  kOverCapacity,
  kUnreservedUse,
  kMachineMemory,
  kFillerLeaving,
  // Of bookings alone.
  kCannotStart,
  // Of fillers on a GPU; of these also kOutOfService.
  kLeased,
  kWanted,
  kForeignProcess,
  kLoad,
  kPaused,
  kRemoved,
  kOtherFiller,
  kIdleTime,
  kResting,
};
const char* to_string(ReasonCode code);

// Where the time belongs in a sentence.
inline constexpr std::string_view kTimePlace = "{time}";

struct Reason {
  ReasonCode code{};
  std::string text;                // has kTimePlace at most once
  std::optional<WallTime> time{};  // what belongs there; empty: the text has no such place
  std::string remedy{};  // what the waiter can do: "starts now with --timeout 40m"; may be empty
  bool operator==(const Reason&) const = default;
};

// The sentence, with the time as people of this machine read it: "waits for GPU 3: bob's program
// (L7) ends at 15:40"; with seconds where that is near.
std::string reason_text(std::string_view text, std::optional<WallTime> time, WallTime now);
std::string reason_text(const Reason& reason, WallTime now);

}  // namespace gpurota
