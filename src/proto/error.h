// Errors on the wire: a varlink error's name and parameters, converted from and to Error.
//
// Made by the daemon (from an Error) and by the codec (for an invalid call); read by clients.
#pragma once

#include "base/result.h"
#include "proto/error_names.h"
#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::proto {

// Never on the wire: means that parse_reply could not understand the answer.
inline constexpr std::string_view kMalformed = "malformed";

struct WireError {
  std::string name;                     // one of error_names.h, or a newer daemon's
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
// NoGpu with its counts, and with what a request would wait for.
WireError no_gpu_error(std::string message, int free, int total,
                       std::optional<Reason> wait_reason = {});
// InvalidParameter for a value that only the daemon can judge. The codec reports wrong types with
// the same error.
WireError invalid_parameter(std::string_view field);

// The error in the form that a client's code handles. Always has a message for people.
Error to_error(const WireError& error);

}  // namespace gpurota::proto
