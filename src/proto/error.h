// Errors as they travel: a varlink error's name and what it carries, and its way from and to Error.
//
// Made by the daemon (from an Error) and by the codec (a call that is no call); read by clients.
#pragma once

#include "base/result.h"
#include "proto/error_names.h"
#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::proto {

// Never on the wire: an answer that parse_reply could not understand.
inline constexpr std::string_view kMalformed = "malformed";

struct WireError {
  std::string name;                     // one of error_names.h, or one of a newer daemon
  std::string message;                  // dev.gpurota's: the sentence
  std::string subject;                  // org.varlink.service's: the interface, method or parameter
  int free = 0;                         // kNoGpu
  int total = 0;                        // kNoGpu
  std::optional<Reason> wait_reason{};  // kNoGpu
  bool operator==(const WireError&) const = default;
};

// Code -> name: kInvalid InvalidRequest, kNotFound and kGone NotFound, kDenied Denied, kNoGpu
// NoGpu, kLimit LimitExceeded, kUnavailable Unavailable, all others Failed.
WireError wire_error(const Error& error);
// NoGpu with its counts, and what it would wait for.
WireError no_gpu_error(std::string message, int free, int total,
                       std::optional<Reason> wait_reason = {});
// InvalidParameter: for values that only the daemon can judge, as the codec does for types.
WireError invalid_parameter(std::string_view field);

// The error as a client's code handles and shows it: always with a message for people.
Error to_error(const WireError& error);

}  // namespace gpurota::proto
