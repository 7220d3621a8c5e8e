#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace gpurota {

Error Error::context(std::string_view where) && {
  std::string text(where);
  text += ": ";
  text += message;
  message = std::move(text);
  return std::move(*this);
}

const char* to_string(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not_found";
    case Code::kDenied:
      return "denied";
    case Code::kNoGpu:
      return "no_gpu";
    case Code::kLimit:
      return "limit";
    case Code::kGone:
      return "gone";
    case Code::kTimeout:
      return "timeout";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kIo:
      return "io";
    case Code::kInternal:
      return "internal";
  }
  return "internal";
}

tl::unexpected<Error> fail_errno(std::string_view what, int error_number) {
  Code code = Code::kIo;
  if (error_number == EACCES || error_number == EPERM) code = Code::kDenied;
  if (error_number == ENOENT) code = Code::kNotFound;
  std::string text(what);
  text += ": ";
  // generic_category().message() is strerror() without a static buffer.
  text += std::generic_category().message(error_number);
  return fail(code, std::move(text), error_number);
}

}  // namespace gpurota
