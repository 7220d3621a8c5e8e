// What would let a request start at once, in the words of the command line. Pure, but for ask_alternatives.
#pragma once

#include "client/connection.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// "with --timeout 9m it could start now on GPU 1", a line each, indented.
std::string alternatives_lines(const std::vector<proto::Alternative>& alternatives);
// "it could start now with --timeout 9m (on GPU 1) or with --swap (on GPU 0)"; empty: nothing helps.
std::string alternatives_hint(const std::vector<proto::Alternative>& alternatives);

// Empty too where the daemon does not tell: they are advice, and nothing depends on them.
std::vector<proto::Alternative> ask_alternatives(client::Connection& connection,
                                                 const proto::FindAlternatives& call);

}  // namespace gpurota::cli
