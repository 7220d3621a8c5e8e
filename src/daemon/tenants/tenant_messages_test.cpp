#include "daemon/tenants/tenant_messages.h"

#include "daemon/tenants/tenant_page.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace gpurota::daemon {
namespace {

template <class Message>
std::vector<std::byte> bytes_of(const Message& message) {
  std::vector<std::byte> bytes(sizeof message);
  std::memcpy(bytes.data(), &message, sizeof message);
  return bytes;
}

gpurota_msg_hello good_hello() {
  auto hello = make_message<gpurota_msg_hello>(GPUROTA_MSG_HELLO, 1);
  hello.magic = GPUROTA_WIRE_MAGIC;
  hello.version = GPUROTA_WIRE_VERSION;
  return hello;
}

TEST(TenantMessages, HelloIsParsedCompletely) {
  auto hello = good_hello();
  hello.lease = 12;
  hello.held_count = GPUROTA_SLOTS;
  const auto message = parse_tenant_message(bytes_of(hello));
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<gpurota_msg_hello>(*message).lease, 12u);
}

TEST(TenantMessages, ANewerLibrarysLongerMessageIsUnderstood) {
  auto bytes = bytes_of(good_hello());
  bytes.resize(bytes.size() + 32, std::byte{7});
  EXPECT_TRUE(parse_tenant_message(bytes));
}

TEST(TenantMessages, EveryTruncationIsRefused) {
  const auto whole = bytes_of(good_hello());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_tenant_message(std::span(whole).first(size))) << size;
  }
  const auto grow = bytes_of(make_message<gpurota_msg_grow>(GPUROTA_MSG_GROW, 1));
  for (std::size_t size = 0; size < grow.size(); ++size) {
    EXPECT_FALSE(parse_tenant_message(std::span(grow).first(size))) << size;
  }
}

TEST(TenantMessages, HelloOfAnOlderLibraryLacksHostMemory) {
  auto here = make_message<gpurota_msg_swap_here>(GPUROTA_MSG_SWAP_HERE, 1);
  here.memory[0].movable_bytes = 5;
  here.hosted_bytes[0] = 7;
  const auto said = bytes_of(here);
  auto message = parse_tenant_message(std::span(said).first(GPUROTA_SWAP_HERE_LEAST));
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<gpurota_msg_swap_here>(*message).memory[0].movable_bytes, 5u);
  EXPECT_EQ(std::get<gpurota_msg_swap_here>(*message).hosted_bytes[0], 0u);
  EXPECT_FALSE(parse_tenant_message(std::span(said).first(GPUROTA_SWAP_HERE_LEAST - 1)));
  auto shrink = make_message<gpurota_msg_swap_shrink>(GPUROTA_MSG_SWAP_SHRINK, 1);
  shrink.wired_bytes = 5;
  shrink.hosted_bytes = 7;
  const auto freed = bytes_of(shrink);
  message = parse_tenant_message(std::span(freed).first(GPUROTA_SWAP_SHRINK_LEAST));
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<gpurota_msg_swap_shrink>(*message).wired_bytes, 5u);
  EXPECT_EQ(std::get<gpurota_msg_swap_shrink>(*message).hosted_bytes, 0u);
}

TEST(TenantMessages, MessageThatNoLibrarySendsIsRefused) {
  auto hello = good_hello();
  hello.magic = 1;
  EXPECT_FALSE(parse_tenant_message(bytes_of(hello)));
  hello = good_hello();
  hello.held_count = GPUROTA_SLOTS + 1;
  EXPECT_FALSE(parse_tenant_message(bytes_of(hello)));
  auto grow = make_message<gpurota_msg_grow>(GPUROTA_MSG_GROW, 1);
  grow.slot = GPUROTA_SLOTS;
  EXPECT_FALSE(parse_tenant_message(bytes_of(grow)));
  grow.slot = 0;
  grow.kind = 2;
  EXPECT_FALSE(parse_tenant_message(bytes_of(grow)));
  auto back = make_message<gpurota_msg_return>(GPUROTA_MSG_RETURN, 1);
  back.slot = 1u << 31;
  EXPECT_FALSE(parse_tenant_message(bytes_of(back)));
  auto holding = make_message<gpurota_msg_holding>(GPUROTA_MSG_HOLDING, 1);
  holding.kind = GPUROTA_HOLDING_END + 1;
  EXPECT_FALSE(parse_tenant_message(bytes_of(holding)));
  // A message that only the daemon sends is refused.
  EXPECT_FALSE(
      parse_tenant_message(bytes_of(make_message<gpurota_msg_welcome>(GPUROTA_MSG_WELCOME, 1))));
  EXPECT_FALSE(parse_tenant_message(bytes_of(gpurota_msg_header{999, 8, 1})));
}

template <class Message>
bool is_read_with_slot(std::uint16_t type, std::uint32_t slot) {
  auto message = make_message<Message>(type, 1);
  message.slot = slot;
  return parse_tenant_message(bytes_of(message)).has_value();
}

// The daemon indexes its tables and the shared page by the slot.
TEST(TenantMessages, UnknownSlotIsRefusedInEveryMessage) {
  for (const std::uint32_t slot : {0u, GPUROTA_SLOTS - 1u, GPUROTA_SLOTS + 0u, ~0u}) {
    const bool there = slot < GPUROTA_SLOTS;
    EXPECT_EQ(is_read_with_slot<gpurota_msg_grow>(GPUROTA_MSG_GROW, slot), there);
    EXPECT_EQ(is_read_with_slot<gpurota_msg_return>(GPUROTA_MSG_RETURN, slot), there);
    EXPECT_EQ(is_read_with_slot<gpurota_msg_query>(GPUROTA_MSG_QUERY, slot), there);
    EXPECT_EQ(is_read_with_slot<gpurota_msg_holding>(GPUROTA_MSG_HOLDING, slot), there);
    EXPECT_EQ(is_read_with_slot<gpurota_msg_contexts>(GPUROTA_MSG_CONTEXTS, slot), there);
    EXPECT_EQ(is_read_with_slot<gpurota_msg_swap_grow>(GPUROTA_MSG_SWAP_GROW, slot), there);
    EXPECT_EQ(is_read_with_slot<gpurota_msg_swap_shrink>(GPUROTA_MSG_SWAP_SHRINK, slot), there);
    EXPECT_EQ(is_read_with_slot<gpurota_msg_swap_moved>(GPUROTA_MSG_SWAP_MOVED, slot), there);
  }
}

TEST(TenantMessages, ACountBeyondItsListIsRefused) {
  auto processes = make_message<gpurota_msg_processes>(GPUROTA_MSG_PROCESSES, 1);
  processes.count = GPUROTA_WIRE_PIDS;
  EXPECT_TRUE(parse_tenant_message(bytes_of(processes)));
  processes.count = GPUROTA_WIRE_PIDS + 1;
  EXPECT_FALSE(parse_tenant_message(bytes_of(processes)));
  auto here = make_message<gpurota_msg_swap_here>(GPUROTA_MSG_SWAP_HERE, 1);
  here.slots = GPUROTA_SLOTS;
  EXPECT_TRUE(parse_tenant_message(bytes_of(here)));
  here.slots = GPUROTA_SLOTS + 1;
  EXPECT_FALSE(parse_tenant_message(bytes_of(here)));
}

TEST(TenantMessages, UnknownKindOrDirectionIsRefused) {
  auto grow = make_message<gpurota_msg_swap_grow>(GPUROTA_MSG_SWAP_GROW, 1);
  grow.kind = GPUROTA_SWAP_HOSTED;
  EXPECT_TRUE(parse_tenant_message(bytes_of(grow)));
  grow.kind = GPUROTA_SWAP_HOSTED + 1;
  EXPECT_FALSE(parse_tenant_message(bytes_of(grow)));
  auto moved = make_message<gpurota_msg_swap_moved>(GPUROTA_MSG_SWAP_MOVED, 1);
  moved.direction = GPUROTA_SWAP_RESTORE;
  EXPECT_TRUE(parse_tenant_message(bytes_of(moved)));
  moved.direction = GPUROTA_SWAP_RESTORE + 1;
  EXPECT_FALSE(parse_tenant_message(bytes_of(moved)));
  auto question = make_message<gpurota_msg_automatic>(GPUROTA_MSG_AUTOMATIC, 1);
  EXPECT_FALSE(parse_tenant_message(bytes_of(question))) << "it does not say whose library it is";
  question.magic = GPUROTA_WIRE_MAGIC;
  EXPECT_TRUE(parse_tenant_message(bytes_of(question)));
}

TEST(TenantMessages, AmountsAreCappedAtTheLimitOfAProcess) {
  auto grow = make_message<gpurota_msg_grow>(GPUROTA_MSG_GROW, 1);
  grow.returned_bytes = grow.need_bytes = grow.want_bytes = UINT64_MAX;
  auto message = parse_tenant_message(bytes_of(grow));
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<gpurota_msg_grow>(*message).returned_bytes, kMostSaid.count());
  EXPECT_EQ(std::get<gpurota_msg_grow>(*message).need_bytes, kMostSaid.count());
  EXPECT_EQ(std::get<gpurota_msg_grow>(*message).want_bytes, kMostSaid.count());
  auto here = make_message<gpurota_msg_swap_here>(GPUROTA_MSG_SWAP_HERE, 1);
  for (gpurota_swap_memory& memory : here.memory) {
    memory.movable_bytes = memory.resident_bytes = memory.wired_bytes = UINT64_MAX;
  }
  message = parse_tenant_message(bytes_of(here));
  ASSERT_TRUE(message);
  for (const gpurota_swap_memory& memory : std::get<gpurota_msg_swap_here>(*message).memory) {
    EXPECT_EQ(memory.movable_bytes, kMostSaid.count());
    EXPECT_EQ(memory.resident_bytes, kMostSaid.count());
    EXPECT_EQ(memory.wired_bytes, kMostSaid.count());
  }
  auto moved = make_message<gpurota_msg_swap_moved>(GPUROTA_MSG_SWAP_MOVED, 1);
  moved.bytes = moved.returned = UINT64_MAX;
  message = parse_tenant_message(bytes_of(moved));
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<gpurota_msg_swap_moved>(*message).bytes, kMostSaid.count());
  EXPECT_EQ(std::get<gpurota_msg_swap_moved>(*message).returned, kMostSaid.count());
}

}  // namespace
}  // namespace gpurota::daemon
