#include "proto/error.h"

#include <utility>

namespace gpurota::proto {
namespace {

struct Pair {
  Code code;
  std::string_view name;
};
// A name is converted to the code of its first pair, and a code to the name of its first pair.
// kMalformed is never on the wire, so kInternal is sent as kFailed.
constexpr Pair kPairs[] = {
    {Code::kInvalid, kInvalidRequest},
    {Code::kInvalid, kInvalidParameter},
    {Code::kNotFound, kNotFound},
    {Code::kGone, kNotFound},
    {Code::kDenied, kDenied},
    {Code::kDenied, kSignedOut},
    {Code::kNoGpu, kNoGpu},
    {Code::kLimit, kLimitExceeded},
    {Code::kUnavailable, kUnavailable},
    {Code::kInternal, kMalformed},
    {Code::kIo, kFailed},
};

std::string standard_message(const WireError& error) {
  if (error.name == kInvalidParameter) {
    return "the daemon does not accept the value of '" + error.subject + "'";
  }
  if (error.name == kMethodNotFound || error.name == kInterfaceNotFound ||
      error.name == kMethodNotImplemented) {
    return "the daemon does not know " + error.subject +
           ": it is older than this program; restart it after an update";
  }
  return "the daemon answered " + error.name;
}

}  // namespace

WireError wire_error(const Error& error) {
  for (const Pair& pair : kPairs) {
    if (pair.code == error.code && pair.name != kMalformed) {
      return {.name = std::string(pair.name), .message = error.message, .subject = {}};
    }
  }
  return {.name = std::string(kFailed), .message = error.message, .subject = {}};
}

WireError no_gpu_error(std::string message, int free, int total,
                       std::optional<Reason> wait_reason) {
  return {.name = std::string(kNoGpu),
          .message = std::move(message),
          .subject = {},
          .free = free,
          .total = total,
          .wait_reason = std::move(wait_reason)};
}

WireError invalid_parameter(std::string_view field) {
  return {.name = std::string(kInvalidParameter), .message = {}, .subject = std::string(field)};
}

Error to_error(const WireError& error) {
  Code code = Code::kUnavailable;  // standard errors about methods, and names of a newer daemon
  for (const Pair& pair : kPairs) {
    if (pair.name == error.name) {
      code = pair.code;
      break;
    }
  }
  return {code, 0, error.message.empty() ? standard_message(error) : error.message};
}

}  // namespace gpurota::proto
