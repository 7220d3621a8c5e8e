// Text of the changes that would let a request start at once, as the daemon suggests them. Pure,
// but for ask_alternatives.
#pragma once

#include "client/connection.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// "starts now with --timeout 9m, on GPU 1": one per line, indented.
std::string alternatives_lines(const std::vector<proto::Alternative>& alternatives);

// Also empty after an error: alternatives are only advice.
std::vector<proto::Alternative> ask_alternatives(client::Connection& connection,
                                                 const proto::FindAlternatives& call);

}  // namespace gpurota::cli
