// The words of the enums, index by enumerator; [0] is what an unknown one is written as.
#pragma once

#include "proto/types.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace gpurota::proto {

template <class Enum>
struct Words;

template <>
struct Words<GpuState> {
  static constexpr std::array<const char*, 6> kAll = {"unknown",        "available", "in_use",
                                                      "unreserved_use", "error",     "draining"};
};
template <>
struct Words<LeaseKind> {
  static constexpr std::array<const char*, 7> kAll = {"unknown", "run", "reservation", "job",
                                                      "filler",  "pod", "slurm"};
};
template <>
struct Words<Share> {
  static constexpr std::array<const char*, 4> kAll = {"unknown", "exclusive", "slice", "swap"};
};
template <>
struct Words<LeaseState> {
  static constexpr std::array<const char*, 4> kAll = {"unknown", "active", "ending", "expired"};
};
template <>
struct Words<Ended> {
  static constexpr std::array<const char*, 5> kAll = {"unknown", "finished", "released", "lost",
                                                      "expired"};
};
template <>
struct Words<ProcessType> {
  static constexpr std::array<const char*, 3> kAll = {"unknown", "compute", "graphics"};
};
template <>
struct Words<FindingKind> {
  static constexpr std::array<const char*, 6> kAll = {
      "unknown", "unreserved_use", "foreign_use", "over_limit", "unused", "not_limited"};
};
template <>
struct Words<LibraryState> {
  static constexpr std::array<const char*, 4> kAll = {"unknown", "absent", "silent", "away"};
};
template <>
struct Words<FindingAction> {
  static constexpr std::array<const char*, 4> kAll = {"unknown", "report", "notify", "stop"};
};
template <>
struct Words<EventType> {
  static constexpr std::array<const char*, 27> kAll = {
      "unknown",        "lease_made",     "lease_started",   "lease_updated",     "lease_ending",
      "lease_gone",     "request_queued", "request_granted", "request_cancelled", "call_denied",
      "grant_denied",   "finding_begun",  "finding_ended",   "process_stopped",   "gpu_error",
      "gpu_recovered",  "gpu_drained",    "gpu_undrained",   "config_reloaded",   "daemon_started",
      "daemon_stopped", "filler_started", "filler_yielded",  "filler_ended",      "turn_trouble",
      "gpu_set",        "filler_resumed"};
};
template <>
struct Words<CheckStatus> {
  static constexpr std::array<const char*, 4> kAll = {"unknown", "ok", "warning", "error"};
};

template <class Enum>
constexpr const char* word_of(Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return Words<Enum>::kAll[index < Words<Enum>::kAll.size() ? index : 0];
}

template <class Enum>
constexpr Enum enum_of(std::string_view word) {
  for (std::size_t i = 1; i < Words<Enum>::kAll.size(); ++i) {
    if (Words<Enum>::kAll[i] == word) return static_cast<Enum>(i);
  }
  return static_cast<Enum>(0);
}

}  // namespace gpurota::proto
