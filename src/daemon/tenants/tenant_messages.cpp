#include "daemon/tenants/tenant_messages.h"

#include "daemon/tenants/tenant_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gpurota::daemon {
namespace {

template <class Message>
Result<Message> read_as(std::span<const std::byte> packet) {
  if (packet.size() < sizeof(Message)) {
    return fail(Code::kInvalid, fmt::format("a message of {} bytes is too short for its type, {} "
                                            "were expected",
                                            packet.size(), sizeof(Message)));
  }
  Message message;
  std::memcpy(&message, packet.data(), sizeof(Message));
  return message;
}

// Bounds amounts by what a process may have, so that sums do not wrap. Amounts that a tenant got
// from the daemon are never larger than that.
void cut(std::uint64_t& bytes) { bytes = std::min(bytes, kMostSaid.count()); }
void cut(gpurota_msg_hello& m) {
  for (gpurota_held& held : m.held) cut(held.granted_bytes);
}
void cut(gpurota_msg_grow& m) {
  cut(m.returned_bytes);
  cut(m.need_bytes);
  cut(m.want_bytes);
}
void cut(gpurota_msg_return& m) { cut(m.bytes); }
void cut(gpurota_msg_holding& m) {
  cut(m.bytes);
  cut(m.returned_bytes);
}
void cut(gpurota_msg_swap_here& m) {
  for (gpurota_swap_memory& memory : m.memory) {
    cut(memory.movable_bytes);
    cut(memory.resident_bytes);
    cut(memory.wired_bytes);
  }
  for (std::uint64_t& hosted : m.hosted_bytes) cut(hosted);
}
void cut(gpurota_msg_swap_grow& m) { cut(m.bytes); }
void cut(gpurota_msg_swap_shrink& m) {
  for (std::uint64_t* bytes : {&m.resident_bytes, &m.out_bytes, &m.wired_bytes, &m.hosted_bytes}) {
    cut(*bytes);
  }
}
void cut(gpurota_msg_swap_moved& m) {
  cut(m.bytes);
  cut(m.returned);
}
template <class Message>
void cut(Message&) {}  // has no amounts

Result<void> check_slot(std::uint32_t slot) {
  if (slot < GPUROTA_SLOTS) return {};
  return fail(Code::kInvalid, fmt::format("slot {} is out of range", slot));
}

template <class Message>
Result<TenantMessage> read_slotted(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const Message message, read_as<Message>(packet));
  GPUROTA_TRY(check_slot(message.slot));
  return message;
}

Result<TenantMessage> read_hello(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_hello hello, read_as<gpurota_msg_hello>(packet));
  if (hello.magic != GPUROTA_WIRE_MAGIC) return fail(Code::kInvalid, "not a gpurota library");
  if (hello.held_count > GPUROTA_SLOTS) {
    return fail(Code::kInvalid, fmt::format("{} held GPUs are out of range", hello.held_count));
  }
  return hello;
}

Result<TenantMessage> read_grow(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_grow grow, read_as<gpurota_msg_grow>(packet));
  GPUROTA_TRY(check_slot(grow.slot));
  if (grow.kind > GPUROTA_GROW_CONTEXT) {
    return fail(Code::kInvalid, fmt::format("kind {} of growth is unknown", grow.kind));
  }
  return grow;
}

Result<TenantMessage> read_processes(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_processes m, read_as<gpurota_msg_processes>(packet));
  if (m.count > GPUROTA_WIRE_PIDS) {
    return fail(Code::kInvalid, fmt::format("{} processes are out of range", m.count));
  }
  return m;
}

Result<TenantMessage> read_open(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_open m, read_as<gpurota_msg_open>(packet));
  if (m.name.owner[0] == 0) return fail(Code::kInvalid, "no process has the key 0");
  return m;
}

Result<TenantMessage> read_holding(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_holding m, read_as<gpurota_msg_holding>(packet));
  GPUROTA_TRY(check_slot(m.slot));
  if (m.kind > GPUROTA_HOLDING_END) {
    return fail(Code::kInvalid, fmt::format("kind {} of holding is unknown", m.kind));
  }
  return m;
}

// Fields that an older library does not send are zero.
template <class Message>
Result<Message> read_grown(std::span<const std::byte> packet, std::size_t least) {
  if (packet.size() >= sizeof(Message) || packet.size() < least) return read_as<Message>(packet);
  Message message{};
  std::memcpy(&message, packet.data(), packet.size());
  return message;
}

Result<TenantMessage> read_automatic(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_automatic question,
                           read_grown<gpurota_msg_automatic>(packet, GPUROTA_AUTOMATIC_LEAST));
  if (question.magic != GPUROTA_WIRE_MAGIC) return fail(Code::kInvalid, "not a gpurota library");
  return question;
}

Result<TenantMessage> read_swap_here(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_swap_here m,
                           read_grown<gpurota_msg_swap_here>(packet, GPUROTA_SWAP_HERE_LEAST));
  if (m.slots > GPUROTA_SLOTS) {
    return fail(Code::kInvalid, fmt::format("{} slots are out of range", m.slots));
  }
  return m;
}

Result<TenantMessage> read_swap_grow(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_swap_grow m, read_as<gpurota_msg_swap_grow>(packet));
  GPUROTA_TRY(check_slot(m.slot));
  if (m.kind > GPUROTA_SWAP_HOSTED) {
    return fail(Code::kInvalid, fmt::format("kind {} of growth is unknown", m.kind));
  }
  return m;
}

Result<TenantMessage> read_swap_shrink(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_swap_shrink m,
                           read_grown<gpurota_msg_swap_shrink>(packet, GPUROTA_SWAP_SHRINK_LEAST));
  GPUROTA_TRY(check_slot(m.slot));
  return m;
}

Result<TenantMessage> read_swap_moved(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_swap_moved m, read_as<gpurota_msg_swap_moved>(packet));
  GPUROTA_TRY(check_slot(m.slot));
  if (m.direction > GPUROTA_SWAP_RESTORE) {
    return fail(Code::kInvalid, fmt::format("direction {} is unknown", m.direction));
  }
  return m;
}

Result<TenantMessage> read_swap_status(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_swap_status m,
                           read_grown<gpurota_msg_swap_status>(packet, GPUROTA_SWAP_STATUS_LEAST));
  return m;
}

Result<TenantMessage> parse_whole(std::span<const std::byte> packet) {
  GPUROTA_ASSIGN_OR_RETURN(const gpurota_msg_header header, read_as<gpurota_msg_header>(packet));
  switch (header.type) {
    case GPUROTA_MSG_HELLO:
      return read_hello(packet);
    case GPUROTA_MSG_AUTOMATIC:
      return read_automatic(packet);
    case GPUROTA_MSG_GROW:
      return read_grow(packet);
    case GPUROTA_MSG_RETURN:
      return read_slotted<gpurota_msg_return>(packet);
    case GPUROTA_MSG_QUERY:
      return read_slotted<gpurota_msg_query>(packet);
    case GPUROTA_MSG_PROCESSES:
      return read_processes(packet);
    case GPUROTA_MSG_OPEN:
      return read_open(packet);
    case GPUROTA_MSG_HOLDING:
      return read_holding(packet);
    case GPUROTA_MSG_MARKED:
      return read_as<gpurota_msg_marked>(packet);
    case GPUROTA_MSG_PARK_READY:
      return read_as<gpurota_msg_park_ready>(packet);
    case GPUROTA_MSG_CONTEXTS:
      return read_slotted<gpurota_msg_contexts>(packet);
    case GPUROTA_MSG_SWAP_HERE:
      return read_swap_here(packet);
    case GPUROTA_MSG_SWAP_GROW:
      return read_swap_grow(packet);
    case GPUROTA_MSG_SWAP_SHRINK:
      return read_swap_shrink(packet);
    case GPUROTA_MSG_SWAP_STATUS:
      return read_swap_status(packet);
    case GPUROTA_MSG_SWAP_MOVED:
      return read_swap_moved(packet);
    default:
      return fail(Code::kInvalid, fmt::format("message type {} is unknown", header.type));
  }
}

}  // namespace

bool is_swap_message(const TenantMessage& message) {
  return std::holds_alternative<gpurota_msg_swap_here>(message) ||
         std::holds_alternative<gpurota_msg_swap_grow>(message) ||
         std::holds_alternative<gpurota_msg_swap_shrink>(message) ||
         std::holds_alternative<gpurota_msg_swap_status>(message) ||
         std::holds_alternative<gpurota_msg_swap_moved>(message);
}

Result<TenantMessage> parse_tenant_message(std::span<const std::byte> packet) {
  auto message = parse_whole(packet);
  if (message) std::visit([](auto& m) { cut(m); }, *message);
  return message;
}

}  // namespace gpurota::daemon
