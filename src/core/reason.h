// The reason for a wait, made by the daemon and shown by every client: one whole sentence, with a
// place for a time where one is known. Plain data, and the one function that fills in the time.
//
// Sentences are made in two files only: lease/reason.cpp (requests and bookings) and
// filler/place_reason.cpp (fillers). tools/check_reasons.py checks that no client joins sentences
// or makes its own.
#pragma once

#include "core/time.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota {

// Words of the interface (ReasonCode in dev.gpurota.varlink, which says what each means); stable.
enum class ReasonCode {
  // For requests, and for bookings whose time has come.
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
  // For bookings only.
  kCannotStart,
  // For fillers on a GPU, which also use kOutOfService.
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

// The place of the time in a sentence.
inline constexpr std::string_view kTimePlace = "{time}";

struct Reason {
  ReasonCode code{};
  std::string text;                // has kTimePlace at most once
  std::optional<WallTime> time{};  // for that place; empty: the text has no place
  std::string remedy{};  // what the waiter can do: "starts now with --timeout 40m"; may be empty
  bool operator==(const Reason&) const = default;
};

// The sentence, with the time for people of this machine: "waits for GPU 3: bob's program (L7) ends
// at 15:40"; with seconds if the time is near.
std::string reason_text(std::string_view text, std::optional<WallTime> time, WallTime now);
std::string reason_text(const Reason& reason, WallTime now);

}  // namespace gpurota
