// Checks and parses messages of tenants: bytes to typed messages (abi/wire.h). Pure.
#pragma once

#include "abi/wire.h"
#include "base/result.h"

#include <cstddef>
#include <span>
#include <variant>

namespace gpurota::daemon {

using TenantMessage =
    std::variant<gpurota_msg_hello, gpurota_msg_grow, gpurota_msg_return, gpurota_msg_query,
                 gpurota_msg_contexts, gpurota_msg_automatic, gpurota_msg_processes,
                 gpurota_msg_open, gpurota_msg_holding, gpurota_msg_marked, gpurota_msg_park_ready,
                 gpurota_msg_swap_here, gpurota_msg_swap_grow, gpurota_msg_swap_shrink,
                 gpurota_msg_swap_status, gpurota_msg_swap_moved>;

// kInvalid for what no released library sends: a message too short for its type, an unknown type, a
// slot or count out of range. A message that is longer than known comes from a newer library: its
// tail is ignored.
Result<TenantMessage> parse_tenant_message(std::span<const std::byte> packet);

// Whether only a tenant of a swap lease sends this message, on its event socket.
bool is_swap_message(const TenantMessage& message);

// An empty message to be sent, with its header filled in.
template <class Message>
Message make_message(int type, std::uint32_t seq) {
  Message message{};
  message.header.type = static_cast<std::uint16_t>(type);
  message.header.size = sizeof(Message);
  message.header.seq = seq;
  return message;
}

}  // namespace gpurota::daemon
