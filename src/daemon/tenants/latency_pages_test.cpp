#include "daemon/tenants/latency_pages.h"

#include "daemon/tenants/fake_library_test.h"
#include "daemon/tenants/tenant_messages.h"
#include "ipc/packet.h"
#include "testing/fake_event_loop.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

constexpr LeaseId kServer{1}, kTraining{2};
constexpr uid_t kServersUser = 1000;
const GpuUuid kFirst{"GPU-1"}, kSecond{"GPU-2"};

// A message that a library got on its event socket.
struct Message {
  std::uint32_t type = 0;
  std::uint32_t seq = 0;
  std::uint32_t on = 0;      // of MARK
  std::uint64_t tenant = 0;  // of HOLD and HOLD_END
  std::uint32_t budget = 0;  // of HOLD
  Fd page;
};

class LatencyPagesTest : public ::testing::Test {
 protected:
  using Library = FakeLibrary;

  void lease(LeaseId id, uid_t user, LatencyClass latency, bool gone = false) {
    LeaseEntry entry(processes);
    entry.lease.id = id;
    entry.lease.uid = user;
    entry.lease.latency = latency;
    pages.on_lease_change(entry, gone);
  }

  Library connect(LeaseId lease, std::vector<GpuUuid> gpus = {kFirst}) {
    Library library = connect_library(table, processes, lease, std::move(gpus));
    pages.refresh();
    return library;
  }

  // Nothing, as type 0, if there is no message.
  static Message next(const Library& library) {
    std::array<std::byte, 256> buffer{};
    auto received = ipc::receive_packet(library.event.get(), buffer, 1);
    Message message;
    if (!received || received->state != ipc::IoState::kDone) return message;
    gpurota_msg_header header;
    std::memcpy(&header, buffer.data(), sizeof header);
    message.type = header.type;
    message.seq = header.seq;
    if (header.type == GPUROTA_MSG_MARK) {
      gpurota_msg_mark mark;
      std::memcpy(&mark, buffer.data(), sizeof mark);
      message.on = mark.on;
    } else {
      gpurota_msg_hold_end end;
      std::memcpy(&end, buffer.data(), sizeof end);
      message.tenant = end.tenant;
      if (header.type == GPUROTA_MSG_HOLD) {
        gpurota_msg_hold hold;
        std::memcpy(&hold, buffer.data(), sizeof hold);
        message.budget = hold.budget;
      }
    }
    if (!received->fds.empty()) message.page = std::move(received->fds[0]);
    return message;
  }

  void answer(const Library& library, const Message& mark) {
    auto marked = make_message<gpurota_msg_marked>(GPUROTA_MSG_MARKED, mark.seq);
    pages.on_marked(*library.tenant, marked);
  }
  // The library maps its page. Returns the MARK.
  Message take_mark(const Library& library) {
    Message mark = next(library);
    EXPECT_EQ(mark.type, std::uint32_t{GPUROTA_MSG_MARK});
    EXPECT_EQ(mark.on, 1u);
    EXPECT_TRUE(mark.page);
    answer(library, mark);
    return mark;
  }
  static void expect_hold(const Library& reader, const Library& marker) {
    const Message hold = next(reader);
    EXPECT_EQ(hold.type, std::uint32_t{GPUROTA_MSG_HOLD});
    EXPECT_EQ(hold.tenant, marker.tenant->id.value);
    ASSERT_TRUE(hold.page);
    EXPECT_EQ(::fcntl(hold.page.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  }
  static void expect_end(const Library& reader, std::uint64_t marker) {
    const Message end = next(reader);
    EXPECT_EQ(end.type, std::uint32_t{GPUROTA_MSG_HOLD_END});
    EXPECT_EQ(end.tenant, marker);
  }
  // Messages that the library has not read fill its socket.
  static void fill(const Library& library) {
    while (send_message(library.tenant->event.get(),
                        make_message<gpurota_msg_hold_end>(GPUROTA_MSG_HOLD_END, 0))) {
    }
  }
  static void drain(const Library& library) {
    while (next(library).type != 0) {
    }
  }
  std::uint64_t descriptors_left() {
    std::vector<UserBudgets::Held> held;
    for (;;) {
      auto one = budgets.take(kServersUser, Budget::kDescriptors);
      if (!one) return held.size();
      held.push_back(std::move(*one));
    }
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  config::Config config;
  UserBudgets budgets{{config, 800, 0, [](uid_t) { return false; }, {}}};
  TenantTable table;
  LatencyPages pages{config, table, budgets};
};

TEST_F(LatencyPagesTest, ProcessAloneOnItsGpuGetsNoPage) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer);
  const Library elsewhere = connect(kTraining, {kSecond});
  EXPECT_EQ(next(server).type, 0u);
  EXPECT_EQ(next(elsewhere).type, 0u);
}

TEST_F(LatencyPagesTest, ProcessesBesideAnInteractiveOneReadItsPage) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer, {kFirst, kSecond});
  const Library training = connect(kTraining, {kSecond});
  const Message mark = next(server);
  EXPECT_EQ(next(training).type, 0u) << "before the page was mapped";
  answer(server, mark);
  expect_hold(training, server);
  EXPECT_EQ(pages.held_back_for(kTraining), std::set{kServer});
  EXPECT_TRUE(pages.held_back_for(kServer).empty());
  const Library late = connect(kTraining);
  expect_hold(late, server);
}

TEST_F(LatencyPagesTest, NoProcessOfALeaseIsHeldBackIfOneHasAnOldLibrary) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), first = connect(kTraining);
  Library old = connect(kTraining);
  old.tenant->has_latency_classes = false;
  pages.refresh();
  EXPECT_EQ(next(server).type, std::uint32_t{GPUROTA_MSG_MARK}) << "it was made before";
  EXPECT_EQ(next(server).on, 0u);
  EXPECT_EQ(next(first).type, 0u);
  old.tenant->dead = true;
  pages.refresh();
  take_mark(server);
  expect_hold(first, server);
}

TEST_F(LatencyPagesTest, EveryPageBeginsWithAnotherEvenWord) {
  const auto first_word = [](const Message& mark) {
    std::uint32_t word = 0;
    EXPECT_EQ(::pread(mark.page.get(), &word, sizeof word, 0), ssize_t{sizeof word});
    return word;
  };
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library a = connect(kServer), b = connect(kServer);
  const Library training = connect(kTraining);
  const std::uint32_t of_a = first_word(take_mark(a)), of_b = first_word(take_mark(b));
  EXPECT_NE(of_a, of_b);
  EXPECT_EQ((of_a | of_b) & 1, 0u);
}

TEST_F(LatencyPagesTest, HoldsEndWithTheClassTheLeaseAndTheProcess) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), training = connect(kTraining);
  take_mark(server);
  expect_hold(training, server);
  lease(kServer, kServersUser, LatencyClass::kNormal);
  expect_end(training, server.tenant->id.value);
  const Message off = next(server);
  EXPECT_EQ(off.type, std::uint32_t{GPUROTA_MSG_MARK});
  EXPECT_EQ(off.on, 0u);

  lease(kServer, kServersUser, LatencyClass::kInteractive);
  take_mark(server);
  expect_hold(training, server);
  const std::uint64_t id = server.tenant->id.value;
  table.erase(*server.tenant);
  pages.refresh();
  expect_end(training, id);
}

TEST_F(LatencyPagesTest, MessageThatASocketCouldNotTakeIsSentAgain) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), training = connect(kTraining);
  take_mark(server);
  expect_hold(training, server);
  fill(training);
  lease(kServer, kServersUser, LatencyClass::kInteractive, true);
  drain(training);
  pages.retry();
  expect_end(training, server.tenant->id.value);
  pages.retry();
  EXPECT_EQ(next(training).type, 0u);

  fill(training);
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  next(server);  // MARK off
  take_mark(server);
  drain(training);
  pages.retry();
  expect_hold(training, server);
}

TEST_F(LatencyPagesTest, NewBudgetIsSentToEveryReader) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), training = connect(kTraining);
  take_mark(server);
  Message hold = next(training);
  EXPECT_EQ(hold.budget, 800u);
  config.interactive_percent = 25;
  pages.refresh();
  expect_end(training, server.tenant->id.value);
  hold = next(training);
  EXPECT_EQ(hold.type, std::uint32_t{GPUROTA_MSG_HOLD});
  EXPECT_EQ(hold.budget, 250u);
  pages.refresh();
  EXPECT_EQ(next(training).type, 0u);
}

TEST_F(LatencyPagesTest, LeaseHasHeldBackWorkForAsLongAsItsProcessWithTheMost) {
  const Library a = connect(kTraining), b = connect(kTraining);
  EXPECT_EQ(pages.held(kTraining).count(), 0);
  a.tenant->shared().use[0].held_us = 2'000'000;
  b.tenant->shared().use[0].held_us = 3'000'000;
  EXPECT_EQ(pages.held(kTraining).count(), 3'000'000);
}

TEST_F(LatencyPagesTest, SumsForHowLongALeaseHeldBackWorkInTheLastMinute) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer);
  const Library a = connect(kTraining), b = connect(kTraining);
  take_mark(server);
  const TimePoint begin = TimePoint() + std::chrono::hours(1);
  a.tenant->shared().use[0].held_us = 7'000'000;
  pages.sample(begin);
  a.tenant->shared().use[0].held_us += 400'000;
  b.tenant->shared().use[0].held_us += 300'000;
  pages.sample(begin + std::chrono::seconds(1));
  const auto minute = pages.last_minute(kTraining, begin + std::chrono::seconds(2));
  ASSERT_TRUE(minute);
  EXPECT_EQ(minute->known, Duration(std::chrono::seconds(2)));
  EXPECT_EQ(minute->held, Duration(std::chrono::milliseconds(400)));
  EXPECT_EQ(minute->held_for.at(kServer), minute->held);
  EXPECT_FALSE(pages.last_minute(kServer, begin));
  lease(kServer, kServersUser, LatencyClass::kInteractive, true);
  pages.sample(begin + std::chrono::seconds(3));
  EXPECT_FALSE(pages.last_minute(kTraining, begin));
}

TEST_F(LatencyPagesTest, ReportsThatCannotBeTrueCountForTheTimeThatPassed) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), training = connect(kTraining);
  take_mark(server);
  const TimePoint begin = TimePoint() + std::chrono::hours(1);
  const auto say = [&](std::uint64_t held_us, int second) {
    training.tenant->shared().use[0].held_us = held_us;
    pages.sample(begin + std::chrono::seconds(second));
    return pages.last_minute(kTraining, begin + std::chrono::seconds(second))->held;
  };
  EXPECT_EQ(say(5, 0), Duration());
  EXPECT_EQ(say(UINT64_MAX, 2), Duration(std::chrono::seconds(2)));
  EXPECT_EQ(say(0, 4), Duration(std::chrono::seconds(2))) << "a report that became smaller";
}

TEST_F(LatencyPagesTest, ProcessReadsNoMorePagesThanItHasPlacesFor) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  std::vector<Library> servers;
  for (unsigned i = 0; i <= GPUROTA_MOST_HOLDS; ++i) servers.push_back(connect(kServer));
  const Library training = connect(kTraining);
  for (const Library& server : servers) take_mark(server);
  for (unsigned i = 0; i < GPUROTA_MOST_HOLDS; ++i) expect_hold(training, servers[i]);
  EXPECT_EQ(next(training).type, 0u);
  const std::uint64_t first = servers[0].tenant->id.value;
  table.erase(*servers[0].tenant);
  pages.refresh();
  expect_end(training, first);
  expect_hold(training, servers.back());
}

TEST_F(LatencyPagesTest, PageThatTheProcessSealedItselfIsGivenToNobody) {
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), training = connect(kTraining);
  const Message mark = next(server);
  ASSERT_EQ(::fcntl(mark.page.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  answer(server, mark);
  answer(server, mark);
  pages.refresh();
  EXPECT_EQ(next(training).type, 0u);
  EXPECT_EQ(next(server).type, 0u) << "no second page";
}

TEST_F(LatencyPagesTest, PagesCountAsDescriptorsOfTheInteractiveUser) {
  const std::uint64_t before = descriptors_left();
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), training = connect(kTraining);
  EXPECT_EQ(descriptors_left(), before - 2);
  take_mark(server);
  EXPECT_EQ(descriptors_left(), before - 1);
  lease(kServer, kServersUser, LatencyClass::kNormal);
  EXPECT_EQ(descriptors_left(), before);
}

TEST_F(LatencyPagesTest, UserWithoutDescriptorsLeftHoldsNobodyBack) {
  auto all = budgets.take(kServersUser, Budget::kDescriptors, descriptors_left());
  ASSERT_TRUE(all);
  lease(kServer, kServersUser, LatencyClass::kInteractive);
  const Library server = connect(kServer), training = connect(kTraining);
  EXPECT_EQ(next(server).type, 0u);
  EXPECT_EQ(next(training).type, 0u);
}

}  // namespace
}  // namespace gpurota::daemon
