// What gpurota turns prints. Pure.
#pragma once

#include "cli/table.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

std::string turns_text(const proto::ListTurns::Reply& reply, const Look& look, WallTime now);

}  // namespace gpurota::cli
