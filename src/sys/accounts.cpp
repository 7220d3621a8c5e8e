#include "sys/accounts.h"

#include <fmt/format.h>

#include <grp.h>

namespace gpurota::sys {

Result<gid_t> group_id(const std::string& name) {
  struct group entry {};
  struct group* found = nullptr;
  std::string buffer(65536, '\0');
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) {
    return fail(Code::kNotFound, fmt::format("there is no group \"{}\"", name));
  }
  return found->gr_gid;
}

}  // namespace gpurota::sys
