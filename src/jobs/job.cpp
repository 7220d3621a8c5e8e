#include "jobs/job.h"

#include <array>
#include <utility>

namespace gpurota::jobs {
namespace {

template <class Enum, std::size_t kCount>
using Names = std::array<std::pair<Enum, const char*>, kCount>;

constexpr Names<RestartPolicy, 3> kPolicies = {{{RestartPolicy::kNo, "no"},
                                                {RestartPolicy::kOnFailure, "on-failure"},
                                                {RestartPolicy::kAlways, "always"}}};
constexpr Names<EndReason, 10> kReasons = {{{EndReason::kExited, "exited"},
                                            {EndReason::kSignalled, "signalled"},
                                            {EndReason::kStopped, "stopped"},
                                            {EndReason::kTimeout, "timeout"},
                                            {EndReason::kOverLimit, "over-limit"},
                                            {EndReason::kLeaseLost, "lease-lost"},
                                            {EndReason::kBooking, "booking"},
                                            {EndReason::kCannotStart, "cannot-start"},
                                            {EndReason::kReboot, "reboot"},
                                            {EndReason::kUnknown, "unknown"}}};
constexpr Names<Phase, 9> kPhases = {{{Phase::kStopped, "stopped"},
                                      {Phase::kWaiting, "waiting"},
                                      {Phase::kRunning, "running"},
                                      {Phase::kStopping, "stopping"},
                                      {Phase::kBackingOff, "backing-off"},
                                      {Phase::kFinished, "finished"},
                                      {Phase::kFailed, "failed"},
                                      {Phase::kChained, "chained"},
                                      {Phase::kCancelled, "cancelled"}}};

template <class Enum, std::size_t kCount>
const char* name_of(const Names<Enum, kCount>& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown";
}

template <class Enum, std::size_t kCount>
std::optional<Enum> value_of(const Names<Enum, kCount>& names, std::string_view word) {
  for (const auto& [value, name] : names) {
    if (word == name) return value;
  }
  return std::nullopt;
}

}  // namespace

const char* to_string(RestartPolicy policy) { return name_of(kPolicies, policy); }
std::optional<RestartPolicy> parse_restart_policy(std::string_view word) {
  return value_of(kPolicies, word);
}
const char* to_string(Output output) { return output == Output::kJournal ? "journal" : "file"; }

std::optional<Output> parse_output(std::string_view word) {
  if (word == "file") return Output::kFile;
  if (word == "journal") return Output::kJournal;
  return std::nullopt;
}

const char* to_string(EndReason reason) { return name_of(kReasons, reason); }
std::optional<EndReason> parse_end_reason(std::string_view word) {
  return value_of(kReasons, word);
}
const char* to_string(Phase phase) { return name_of(kPhases, phase); }
std::optional<Phase> parse_phase(std::string_view word) { return value_of(kPhases, word); }

}  // namespace gpurota::jobs
