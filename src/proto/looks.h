// Which methods only look: the one list. After such a call every view is as before (the daemon keeps answers that it has made), and
// nothing waits for the disk; what reads has no line in the audit log. A method that is not here costs that.
#pragma once

#include "proto/methods.h"

#include <string_view>
#include <type_traits>
#include <variant>

namespace gpurota::proto {

template <class Method, class... Others>
inline constexpr bool kIsOneOf = (std::is_same_v<Method, Others> || ...);

template <class Method>
inline constexpr bool kOnlyLooks =
    kIsOneOf<Method, GetInfo, Hold, Status, ListProcesses, Events, Report, Doctor, Health,
             CheckRequest, GetEnvironment, ListRequests, ListFillers, ReadFillerLog, ListTurns,
             ListJobs, ExportJobs, ReadJobLog, ServiceInfo, InterfaceDescription>;

// Whether what it only reads is secret: who has had that is worth a line.
template <class Method>
inline constexpr bool kTellsSecrets = kIsOneOf<Method, GetEnvironment, ExportJobs>;

// Of a method by its whole name; false for one that there is not.
template <class... Methods>
constexpr bool only_looks(std::string_view method, const std::variant<Methods...>*) {
  return ((kOnlyLooks<Methods> && Methods::kMethod == method) || ...);
}
template <class... Methods>
constexpr bool tells_secrets(std::string_view method, const std::variant<Methods...>*) {
  return ((kTellsSecrets<Methods> && Methods::kMethod == method) || ...);
}
constexpr bool only_looks(std::string_view method) {
  return only_looks(method, static_cast<const Params*>(nullptr));
}
constexpr bool tells_secrets(std::string_view method) {
  return tells_secrets(method, static_cast<const Params*>(nullptr));
}

}  // namespace gpurota::proto
