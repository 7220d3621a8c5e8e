// Errors as they travel: a varlink error's name and what it carries, and its way from and to Error.
//
// Made by the daemon (from an Error) and by the codec (a call that is no call); read by clients.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace gpurota::proto {

inline constexpr std::string_view kInvalidRequest = "dev.gpurota.InvalidRequest";
inline constexpr std::string_view kNotFound = "dev.gpurota.NotFound";
inline constexpr std::string_view kDenied = "dev.gpurota.Denied";
inline constexpr std::string_view kNoGpu = "dev.gpurota.NoGpu";
inline constexpr std::string_view kLimitExceeded = "dev.gpurota.LimitExceeded";
inline constexpr std::string_view kUnavailable = "dev.gpurota.Unavailable";
inline constexpr std::string_view kFailed = "dev.gpurota.Failed";

inline constexpr std::string_view kInterfaceNotFound = "org.varlink.service.InterfaceNotFound";
inline constexpr std::string_view kMethodNotFound = "org.varlink.service.MethodNotFound";
inline constexpr std::string_view kMethodNotImplemented =
    "org.varlink.service.MethodNotImplemented";
inline constexpr std::string_view kInvalidParameter = "org.varlink.service.InvalidParameter";

// Never on the wire: an answer that parse_reply could not understand.
inline constexpr std::string_view kMalformed = "malformed";

struct WireError {
  std::string name;     // one of the above, or one of a newer daemon
  std::string message;  // dev.gpurota's: the sentence
  std::string subject;  // org.varlink.service's: the interface, method or parameter
  int free = 0;         // kNoGpu
  int total = 0;        // kNoGpu
  bool operator==(const WireError&) const = default;
};

// Code -> name: kInvalid InvalidRequest, kNotFound and kGone NotFound, kDenied Denied, kNoGpu NoGpu,
// kLimit LimitExceeded, kUnavailable Unavailable, all others Failed.
WireError wire_error(const Error& error);
// NoGpu with its counts.
WireError no_gpu_error(std::string message, int free, int total);
// InvalidParameter: for values that only the daemon can judge, as the codec does for types.
WireError invalid_parameter(std::string_view field);

// The error as a client's code handles and shows it: always with a message for people.
Error to_error(const WireError& error);

}  // namespace gpurota::proto
