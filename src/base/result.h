// How a function of gpurota says that it failed: a value, never an exception.
//
// Library code returns a Result and prints nothing; whoever gives up on the error logs it or shows
// it, once. Outcomes that a caller must handle as a matter of course (limit reached, peer gone)
// are values of the return type instead, not errors.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace gpurota {

// A closed set: each maps to one exit code, one control-protocol error and one log level.
enum class Code {
  kInvalid,      // the request makes no sense, whatever the state: say what to write instead
  kNotFound,     // no such GPU, lease, file
  kDenied,       // not yours, or not permitted by the system
  kNoGpu,        // nothing free that fits now
  kLimit,        // more than a limit allows
  kGone,         // the peer, process or lease ended meanwhile
  kTimeout,      // no answer in time
  kUnavailable,  // daemon, driver or kernel feature not there
  kIo,           // the system failed us: `native` is errno
  kInternal,     // a broken invariant of ours
};

struct [[nodiscard]] Error {
  Code code = Code::kInternal;
  int native = 0;       // errno, or the library's own code; 0 when there is none
  std::string message;  // one sentence: what happened, why, what to do. No trailing newline

  // The same error with `where` in front: "while opening the store: …".
  Error context(std::string_view where) &&;
};

// "invalid", "not_found", …: for logs and JSON; stable.
const char* to_string(Code code);

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Code code, std::string message, int native = 0) {
  return tl::unexpected<Error>(Error{code, native, std::move(message)});
}

// kIo with errno's text appended: fail_errno("cannot open /x") -> "cannot open /x: No such file…".
// kDenied for EACCES and EPERM, kNotFound for ENOENT.
tl::unexpected<Error> fail_errno(std::string_view what, int error_number);

}  // namespace gpurota

#define GPUROTA_CONCAT2(a, b) a##b
#define GPUROTA_CONCAT(a, b) GPUROTA_CONCAT2(a, b)

// Returns the error of `expr` to the caller, if it has one.
#define GPUROTA_TRY(expr)                                                      \
  do {                                                                         \
    if (auto gpurota_try = (expr); !gpurota_try)                               \
      return tl::unexpected<::gpurota::Error>(std::move(gpurota_try).error()); \
  } while (false)

// GPUROTA_ASSIGN_OR_RETURN(auto fd, open_file(path));
#define GPUROTA_ASSIGN_OR_RETURN(lhs, expr) \
  GPUROTA_ASSIGN_OR_RETURN_(lhs, expr, GPUROTA_CONCAT(gpurota_result_, __LINE__))
#define GPUROTA_ASSIGN_OR_RETURN_(lhs, expr, tmp)                            \
  auto tmp = (expr);                                                         \
  if (!tmp) return tl::unexpected<::gpurota::Error>(std::move(tmp).error()); \
  lhs = std::move(*tmp)
