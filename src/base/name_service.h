// Calls the system's name services with the get…_r functions of <pwd.h> and <grp.h>. May block as
// long as they do. Any thread.
#pragma once

#include "base/result.h"

#include <cerrno>
#include <cstddef>
#include <vector>

namespace gpurota {

// read(buffer) calls one of the functions and returns its result. Repeated with a larger buffer, up
// to 1 MiB, while the result is ERANGE. Fails with the errno that `read` returned; a missing
// account is not a failure.
template <class Read>
Result<void> ask_name_service(Read read) {
  constexpr std::size_t kLargestRecord = std::size_t{1} << 20;
  std::vector<char> buffer(4096);
  int r = 0;
  while ((r = read(buffer)) == ERANGE && buffer.size() < kLargestRecord) {
    buffer.resize(buffer.size() * 2);
  }
  if (r != 0) return fail_errno("cannot look up an account", r);
  return {};
}

}  // namespace gpurota
