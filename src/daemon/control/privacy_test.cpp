// What one user may see of another, in every view that the control socket has: status, ps, events, report,
// refusals. A new view that shows a secret fails here as soon as it is asked.
#include "base/log.h"
#include "daemon/control/control_methods.h"
#include "daemon/gpus/fake_world_test.h"
#include "daemon/tenants/swap_tenants.h"
#include "daemon/tenants/turn_keeper.h"
#include "store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using testing::FakeProcesses;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uid_t kAlice = 1000, kBob = 1001, kRoot = 0;

class PrivacyTest : public FakeWorldTest {
 protected:
  PrivacyTest()
      : store(*store::SqliteStore::open_in_memory()),
        recorder(
            {loop, store.get(), "", config, processes, gpus, [this] { return wall(); }, [] {}}),
        leases(
            {loop, *store, processes, gpus, grants, config, [this] { return wall(); },
             [] { return std::string(32, 'a'); },
             [this](const LeaseEntry& entry, bool gone) { recorder.on_lease_change(entry, gone); },
             [](const GpuUuid&) {}, [](LeaseId) { return false; }}),
        queue({loop, *store, processes, leases, gpus, config, [this] { return wall(); },
               [](const QueueEntry&) {}, [](const QueueEntry&, const LeaseEntry&) {},
               [](const QueueEntry&, const Error&) {}}),
        attribution(processes, leases),
        automatic({leases, attribution, processes, gpus, config, {}}),
        turns({loop, config, gpus, leases, recorder, {}, {}}),
        swap({loop, processes, turns, grants, config, {}, [](const GpuUuid&) {}, {}}),
        tenants({loop, processes, leases, grants, config, budgets, automatic, swap,
                 [](const GpuUuid&) {}, [](pid_t) { return std::optional<LeaseId>(); }}),
        keeper({loop, processes, config, gpus, leases, attribution, recorder,
                [](pid_t) { return std::optional<LeaseId>(); }, [](LeaseId, const std::string&) {},
                [](LeaseId, const std::string&) {}, [](const GpuUuid&) {},
                [this] { return wall(); }, [](uid_t) { return std::vector<std::string>(); }}),
        views({config, processes, gpus, leases, queue, grants, tenants, attribution,
               [](uid_t uid) { return uid == kRoot; }, keeper, turns,
               [this] { return std::pair(loop.now(), wall()); }}),
        methods({leases,
                 queue,
                 gpus,
                 views,
                 "",
                 "/libgpurota.so",
                 [] { return std::optional<ports::DriverInfo>(); },
                 [] { return std::optional<Error>(); },
                 [](uid_t) { return std::vector<proto::Check>(); },
                 [](const GpuUuid&) {},
                 recorder,
                 {},
                 [this] { return wall(); }}) {
    log::set_sink([](log::Level, const std::string&) {});
    processes.set_user(kAlice, "alice");
    EXPECT_TRUE(recorder.start({}));
    make_world();
  }
  ~PrivacyTest() override { log::set_sink({}); }

  WallTime wall() const {
    return WallTime(1000h) +
           std::chrono::duration_cast<std::chrono::milliseconds>(loop.now().time_since_epoch());
  }

  // Alice has a lease with a secret command and note, and beside it a secret program without one.
  void make_world() {
    AcquireRequest request;
    request.uid = kAlice;
    FakeProcesses::Spawn cli;
    cli.uid = kAlice;
    request.process = processes.id_of(processes.spawn(cli));
    request.placement.memory = SizeSpec{gib(20), 0};
    request.command = {"secret-command"};
    request.note = "secret-note";
    id = (*leases.acquire(request))->lease.id;
    FakeProcesses::Spawn command;
    command.uid = kAlice;
    command.parent = request.process.pid;
    command.command = {"secret-command"};
    const pid_t main = processes.spawn(command);
    EXPECT_TRUE(leases.start(id, main, false));
    FakeProcesses::Spawn without;
    without.uid = kAlice;
    without.command = {"secret-stray"};
    without.pid = 77123;
    const pid_t stray = processes.spawn(without);
    GpuSample sample;
    sample.uuid = kGpu;
    sample.used = gib(4);
    sample.processes = {{main, gib(1), false}, {stray, gib(3), false}};
    gpus.find(kGpu)->sample = sample;
    keeper.on_look(keeper.look_at(sample));
    loop.advance(1min);
  }

  template <class Method>
  std::string ask(uid_t uid, Method method) {
    FakeProcesses::Spawn client;
    client.uid = uid;
    const Caller caller{processes.id_of(processes.spawn(client)), uid};
    const Outcome outcome = methods.call(caller, proto::Call{std::move(method), false, false});
    std::optional<std::string> answer = outcome.answer;
    if (outcome.long_answer) answer.reset();
    while (!answer) answer = outcome.long_answer->go_on();
    return *answer;
  }
  // All that a user can ask for.
  std::vector<std::string> everything(uid_t uid) {
    proto::Report notes;
    notes.by = "note";
    proto::Acquire whole;
    proto::Update foreign;
    foreign.lease_id = id;
    foreign.note = "x";
    proto::Release release;
    release.lease_id = uid == kBob ? id : LeaseId{999};
    return {ask(uid, proto::Status{}), ask(uid, proto::ListProcesses{}),
            ask(uid, proto::Events{}), ask(uid, notes),
            ask(uid, whole),           ask(uid, proto::Hold{id}),
            ask(uid, release),         ask(uid, proto::ListRequests{})};
  }
  bool any_has(const std::vector<std::string>& answers, const std::string& text) {
    return std::any_of(answers.begin(), answers.end(),
                       [&](const std::string& a) { return a.find(text) != a.npos; });
  }

  std::unique_ptr<store::SqliteStore> store;
  lease::GrantBook grants;
  UserBudgets budgets{{config, 1000, 0}};
  Recorder recorder;
  LeaseManager leases;
  Queue queue;
  Attribution attribution;
  AutomaticLeases automatic;
  TurnKeeper turns;
  SwapTenants swap;
  TenantServer tenants;
  WatchKeeper keeper;
  Views views;
  ControlMethods methods;
  LeaseId id;
};

TEST_F(PrivacyTest, OthersSeeWhoAndHowMuchButNeitherCommandNorNoteNorPid) {
  const auto answers = everything(kBob);
  for (const std::string& answer : answers) {
    EXPECT_THAT(answer, Not(HasSubstr("secret"))) << answer;
    EXPECT_THAT(answer, Not(HasSubstr("77123"))) << answer;
  }
  EXPECT_TRUE(any_has(answers, "alice"));
  EXPECT_TRUE(any_has(answers, "unreserved_use"));
  EXPECT_THAT(answers[3], HasSubstr("\"key\":null")) << "others' notes are one row";
}

TEST_F(PrivacyTest, WhatSomebodyWasRefusedIsForThemAndAdministrators) {
  proto::Release release;
  release.lease_id = LeaseId{999};
  ask(kAlice, release);
  EXPECT_THAT(ask(kBob, proto::Events{}), Not(HasSubstr("was refused")));
  EXPECT_THAT(ask(kAlice, proto::Events{}), HasSubstr("Release was refused"));
  EXPECT_THAT(ask(kRoot, proto::Events{}), HasSubstr("Release was refused"));
}

// The refusal tells what they have.
TEST_F(PrivacyTest, WhatSomebodyMayHaveIsForThemAndAdministratorsToAsk) {
  proto::CheckRequest check;
  check.uid = kAlice;
  check.request.priority = 5;
  EXPECT_THAT(ask(kBob, check), HasSubstr("Denied"));
  for (const uid_t who : {kAlice, kRoot}) {
    EXPECT_THAT(ask(who, check), HasSubstr("priorities up to 0"));
  }
}

TEST_F(PrivacyTest, TheOwnerAndAdministratorsSeeAllOfIt) {
  for (const uid_t viewer : {kAlice, kRoot}) {
    const auto answers = everything(viewer);
    for (const std::size_t view : {0u, 1u, 2u}) {
      EXPECT_THAT(answers[view], HasSubstr("secret")) << view;
      EXPECT_THAT(answers[view], HasSubstr("77123")) << view;
    }
    EXPECT_THAT(answers[3], HasSubstr("secret-note"));
  }
}

TEST_F(PrivacyTest, ASiteMayOpenIt) {
  config.privacy = config::Privacy::kOpen;
  const auto answers = everything(kBob);
  EXPECT_THAT(answers[0], HasSubstr("secret-command"));
  EXPECT_THAT(answers[2], HasSubstr("secret-stray"));
  EXPECT_THAT(answers[3], HasSubstr("secret-note"));
}

}  // namespace
}  // namespace gpurota::daemon
