// How a function of gpurota reports failure: a value, never an exception.
//
// Library code returns a Result and prints nothing; the caller that stops passing the error on logs
// or shows it, once. Outcomes that every caller must handle (limit reached, peer gone) are values
// of the return type, not errors.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace gpurota {

// A closed set: each maps to one exit code, one control-protocol error and one log level.
enum class Code {
  kInvalid,      // invalid in any state: say what to write instead
  kNotFound,     // no such GPU, lease or file
  kDenied,       // not yours, or not permitted by the system
  kNoGpu,        // no free GPU that fits now
  kLimit,        // more than a limit allows
  kGone,         // the peer, process or lease ended meanwhile
  kTimeout,      // no answer in time
  kUnavailable,  // missing daemon, driver or kernel feature
  kIo,           // a system call failed: `native` is errno
  kInternal,     // a broken invariant of gpurota
};

struct [[nodiscard]] Error {
  Code code = Code::kInternal;
  int native = 0;       // errno, or the library's own code; 0 when there is none
  std::string message;  // one sentence: what happened, why, what to do. No trailing newline

  // The same error with `where` before the message: "while opening the store: …".
  Error context(std::string_view where) &&;
};

// "invalid", "not_found", …: for logs and JSON; these words never change.
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
