// Asking the system's name services with the get…_r functions of <pwd.h> and <grp.h>. May block as
// long as they do. Any thread.
#pragma once

#include "base/result.h"

#include <cerrno>
#include <cstddef>
#include <vector>

namespace gpurota {

// read(buffer) calls one of them and gives back what it returned; repeated with a larger buffer
// while it wants one, up to 1 MiB. Fails with that errno; an account that is not there is no
// failure.
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
