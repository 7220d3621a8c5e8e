// The text of `gpurota limits`. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <functional>
#include <string>

namespace gpurota::cli {

// The name of a group, for people; empty: no name.
using GroupName = std::function<std::string(gid_t)>;

std::string limits_text(const proto::GetLimits::Reply& reply, const Layout& layout,
                        const GroupName& group_name);

}  // namespace gpurota::cli
