// The outcome when memory runs out during a call: a call that changes nothing is answered with an
// error. Calls that change something begin only while the reserve is complete
// (base/memory_reserve.h). For control_server.cpp.
#pragma once

#include "daemon/control/control_server.h"
#include "proto/codec.h"

#include <new>
#include <string_view>

namespace gpurota::daemon {

inline proto::WireError no_memory() {
  return proto::wire_error(
      {Code::kUnavailable, 0, "gpurotad is short of memory: nothing was done, try again"});
}

// Parsing may run out of memory: even a short text may describe a call that needs much of it.
inline tl::expected<proto::Call, proto::BadCall> parse_within_memory(std::string_view text) {
  try {
    return proto::parse_call(text);
  } catch (const std::bad_alloc&) {
    return tl::unexpected(proto::BadCall{no_memory(), false});
  }
}

// `serve` must not change anything.
template <class Serve>
Outcome read_within_memory(const Serve& serve) {
  try {
    return serve();
  } catch (const std::bad_alloc&) {
    return {.answer = proto::error_json(no_memory())};
  }
}

// `make` must not change anything.
template <class Make>
std::string answer_within_memory(const Make& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return proto::error_json(no_memory());
  }
}

}  // namespace gpurota::daemon
