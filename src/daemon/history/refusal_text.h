// The text of an event about a call that was refused: in words, not by the names of the protocol.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpurota::daemon {

// "a request for GPUs was refused: no GPU was free". `operation`: the name of a method without its
// interface, or the recorder's own name for what was refused if that was not a call; `error`: the
// name of the error; `more`: the number of refusals since the last such event, or 0.
std::string refusal_text(std::string_view operation, std::string_view error,
                         std::uint64_t more = 0);

}  // namespace gpurota::daemon
