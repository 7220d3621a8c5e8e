// Accounts of the machine by name. Any thread; may take as long as the site's directory service takes,
// so call it at start and for what is rare.
#pragma once

#include "base/result.h"

#include <string>

#include <sys/types.h>

namespace gpurota::sys {

// kNotFound if there is no such group.
Result<gid_t> group_id(const std::string& name);

}  // namespace gpurota::sys
