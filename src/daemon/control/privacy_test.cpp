// Tests of what one user may see of another, in every view that the control socket has: status, ps,
// events, report, refusals. A new view that shows a secret fails these tests once everything() asks
// for the view.
#include "base/log.h"
#include "daemon/control/control_methods.h"
#include "daemon/gpus/fake_world_test.h"
#include "daemon/history/series_keeper.h"
#include "daemon/leases/cdi_specs.h"
#include "daemon/leases/lease_world_test.h"
#include "daemon/notices/notifier.h"
#include "daemon/supervised/fillers.h"
#include "daemon/supervised/jobs.h"
#include "daemon/tenants/park_keeper.h"
#include "daemon/tenants/swap_tenants.h"
#include "daemon/tenants/tenant_server.h"
#include "daemon/tenants/turn_keeper.h"
#include "daemon/users/web_sessions.h"
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

class PrivacyTest : public FakeWorldTest,
                    public Owners,
                    public LeaseEnforcement,
                    public NoticeListener,
                    public DaemonSelf,
                    public Reloading {
 protected:
  PrivacyTest()
      : store(*store::SqliteStore::open_in_memory()),
        recorder({loop, store.get(), "", config, processes, gpus, [this] { return wall(); }}),
        world(loop, *store, processes, gpus, grants, config, [this] { return wall(); }),
        attribution(processes, world.tables),
        automatic({queue, world.tables, leases, attribution, processes, gpus, config, world.users}),
        turns(
            {loop, config, gpus, world.states, world.tables, leases, recorder, world.users, *this}),
        records(world.tables, recorder),
        swap({loop, processes, turns, grants, config, world.users, world.samples, records}),
        tenants({.loop = loop,
                 .processes = processes,
                 .tables = world.tables,
                 .leases = leases,
                 .grants = grants,
                 .config = config,
                 .budgets = world.budgets,
                 .automatic = automatic,
                 .swap = swap,
                 .gpus = gpus,
                 .samples = world.samples,
                 .attribution = attribution,
                 .records = records,
                 .roster = roster}),
        keeper({.loop = loop,
                .processes = processes,
                .config = config,
                .gpus = gpus,
                .tables = world.tables,
                .attribution = attribution,
                .recorder = recorder,
                .states = world.states,
                .tenants = tenants.table(),
                .owners = *this,
                .enforcement = *this,
                .samples = world.samples,
                .groups = world.users,
                .notices = *this,
                .read_container =
                    [](const watch::Container&) {
                      return ContainerFiles{{"secret-web", "secret-image"}, 0};
                    },
                .wall_clock = [this] { return wall(); }}),
        driver_limits({.loop = loop,
                       .config = config,
                       .gpus = gpus,
                       .tables = world.tables,
                       .processes = processes,
                       .driver = driver,
                       .make_probe = {},
                       .end = {},
                       .on_change = {},
                       .file = {}}),
        jobs({.loop = loop,
              .processes = processes,
              .supervisor = no_programs(),
              .wall_clock = [this] { return wall(); },
              .grace = [] { return Duration(1s); },
              .directory = ""}),
        fillers({.loop = loop,
                 .processes = processes,
                 .supervisor = no_programs(),
                 .config = config,
                 .gpus = gpus,
                 .tables = world.tables,
                 .leases = leases,
                 .turns = turns,
                 .recorder = recorder,
                 .queue = queue,
                 .states = world.states,
                 .availability = world.availability,
                 .samples = world.samples,
                 .wall_clock = [this] { return wall(); },
                 .directory = ""}),
        cdi({loop, config, gpus, world.tables, processes, "", "", ""}),
        notifier({loop, nullptr, processes, config, [this] { return wall(); }}),
        series({loop, gpus, world.tables, [](LeaseId) { return std::optional<TurnFigures>(); },
                [this] { return wall(); }, nullptr}),
        sessions(
            {loop, config, world.users, [] { return std::string(); }, [this] { return wall(); }}),
        parker({.loop = loop,
                .tables = world.tables,
                .leases = leases,
                .turns = turns,
                .tenants = tenants.table(),
                .processes = processes,
                .samples = world.samples,
                .recorder = recorder,
                .checks = ParkChecks({.config = config,
                                      .gpus = gpus,
                                      .driver = driver,
                                      .tenants = tenants.table(),
                                      .attribution = attribution,
                                      .processes = processes}),
                .room = ReturnRoom({.tables = world.tables,
                                    .gpus = gpus,
                                    .rooms = world.rooms,
                                    .queue = queue,
                                    .processes = processes,
                                    .config = config,
                                    .wall_clock = [this] { return wall(); }}),
                .runner = nullptr,
                .program = {},
                .set_aside = {},
                .hang_up = {},
                .on_change = [] {}}),
        views({.config = config,
               .processes = processes,
               .gpus = gpus,
               .tables = world.tables,
               .order = world.order,
               .availability = world.availability,
               .grants = grants,
               .tenants = tenants.table(),
               .latency = tenants.latency(),
               .held_back = tenants.held_back(),
               .attribution = attribution,
               .users = world.users,
               .watch = keeper,
               .turns = turns,
               .driver_limits = driver_limits,
               .parker = parker,
               .states = world.states,
               .loop = loop,
               .wall_clock = [this] { return wall(); }}),
        methods({.tables = world.tables,
                 .leases = leases,
                 .queue = queue,
                 .availability = world.availability,
                 .gpus = gpus,
                 .views = views,
                 .tenant_socket = "",
                 .preload = "/libgpurota.so",
                 .driver = driver,
                 .self = *this,
                 .reloading = *this,
                 .samples = world.samples,
                 .recorder = recorder,
                 .states = world.states,
                 .rooms = world.rooms,
                 .allowances = world.allowances,
                 .updates = world.updates,
                 .users = world.users,
                 .grants = grants,
                 .wall_clock = [this] { return wall(); },
                 .jobs = jobs,
                 .processes = processes,
                 .fillers = fillers,
                 .answers = shared_answers,
                 .turns = turns,
                 .config = config,
                 .bookings = world.bookings,
                 .cdi = cdi,
                 .notifier = notifier,
                 .series = series,
                 .wake_streams = [] {},
                 .sessions = sessions,
                 .driver_limits = driver_limits,
                 .parker = parker}) {
    world.on_lease = [this](const LeaseEntry& entry, bool gone) {
      recorder.on_lease_change(entry, gone);
    };
    log::set_sink([](log::Level, const std::string&, const log::Fields&) {});
    processes.set_user(kAlice, "alice");
    EXPECT_TRUE(recorder.start({}));
    make_world();
  }
  ~PrivacyTest() override { log::set_sink({}); }

  void tell_owner(LeaseId, const std::string&) override {}
  void on_notice(const Notice& notice) override { notices[notice.to] += notice.text + "\n"; }
  void release(LeaseId, const std::string&) override {}
  void on_over_limit(LeaseId, const std::string&) override {}
  std::shared_ptr<LongAnswer> doctor(uid_t) override { return nullptr; }
  proto::Health::Reply health() const override { return {}; }
  Result<proto::Reload::Reply> reload() override { return proto::Reload::Reply(); }
  proto::ShowConfig::Reply show_config(bool everything, const std::string& viewer) override {
    proto::ShowConfig::Reply reply;
    reply.file = fmt::format("{} {}", viewer, everything ? "sees everything" : "sees their own");
    return reply;
  }

  // Nothing can be started.
  Supervisor::Parts no_programs() {
    return {.loop = loop,
            .processes = processes,
            .budgets = world.budgets,
            .store = nullptr,
            .keeper = "",
            .systemd_run = "",
            .gpurota = "",
            .runtime_dir = ""};
  }

  WallTime wall() const {
    return WallTime(1000h) +
           std::chrono::duration_cast<std::chrono::milliseconds>(loop.now().time_since_epoch());
  }

  // Alice has a lease with a secret command and note, and a secret program that runs without a
  // lease.
  void make_world() {
    AcquireRequest request;
    request.uid = kAlice;
    FakeProcesses::Spawn cli;
    cli.uid = kAlice;
    request.process = processes.id_of(processes.spawn(cli));
    request.placement.memory = SizeSpec{gib(20), 0};
    request.command = {"secret-command"};
    request.note = "secret-note";
    id = (*queue.acquire(request))->lease.id;
    request.kind = LeaseKind::kReservation;
    request.lasts = 1h;
    request.placement.memory = SizeSpec{gib(1), 0};
    EXPECT_TRUE(world.bookings.make(request, {wall() + 100h}, true));
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
    without.cgroup = "/docker/" + std::string(64, 'e');
    const pid_t stray = processes.spawn(without);
    GpuSample sample;
    sample.uuid = kGpu;
    sample.used = gib(4);
    sample.processes = {{main, gib(1), false}, {stray, gib(3), false}};
    gpus.find(kGpu)->sample = sample;
    keeper.on_sample(keeper.reading_of(sample));
    EXPECT_TRUE(loop.run_until([&] {
      return keeper.container_name(*attribution.owner_of(stray).container, stray).has_value();
    }));
    loop.advance(1min);
  }

  template <class Method>
  std::string ask(uid_t uid, Method method) {
    FakeProcesses::Spawn client;
    client.uid = uid;
    const Caller caller{processes.id_of(processes.spawn(client)), uid};
    const Outcome outcome = methods.call(caller, proto::Call{std::move(method), false, false});
    std::optional<std::string> answer = outcome.shared ? *outcome.shared : outcome.answer;
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
    return {ask(uid, proto::Status{}),
            ask(uid, proto::ListProcesses{}),
            ask(uid, proto::Events{}),
            ask(uid, notes),
            ask(uid, whole),
            ask(uid, proto::Hold{id}),
            ask(uid, release),
            ask(uid, proto::ListRequests{}),
            ask(uid, proto::ListBookings{})};
  }
  bool any_has(const std::vector<std::string>& answers, const std::string& text) {
    return std::any_of(answers.begin(), answers.end(),
                       [&](const std::string& a) { return a.find(text) != a.npos; });
  }

  std::unique_ptr<store::SqliteStore> store;
  lease::GrantBook grants;
  UserBudgets budgets{{config, 1000, 0}};
  Recorder recorder;
  LeaseWorld world;
  LeaseManager& leases = world.leases;
  Queue& queue = world.queue;
  DriverState driver;
  std::map<uid_t, std::string> notices;
  Attribution attribution;
  AutomaticLeases automatic;
  TurnKeeper turns;
  TenantRecords records;
  TenantRoster roster{""};
  SwapTenants swap;
  TenantServer tenants;
  WatchKeeper keeper;
  DriverLimits driver_limits;
  Jobs jobs;
  Fillers fillers;
  SharedAnswers shared_answers;
  CdiSpecs cdi;
  Notifier notifier;
  SeriesKeeper series;
  WebSessions sessions;
  ParkKeeper parker;
  Views views;
  ControlMethods methods;
  LeaseId id;
};

TEST_F(PrivacyTest, OthersSeeUserAndAmountButNoCommandNoteOrPid) {
  const auto answers = everything(kBob);
  for (const std::string& answer : answers) {
    EXPECT_THAT(answer, Not(HasSubstr("secret"))) << answer;
    EXPECT_THAT(answer, Not(HasSubstr("77123"))) << answer;
  }
  EXPECT_TRUE(any_has(answers, "alice"));
  EXPECT_TRUE(any_has(answers, "unreserved_use"));
  EXPECT_THAT(answers[3], HasSubstr("\"key\":null")) << "others' notes are one row";
}

TEST_F(PrivacyTest, RefusalsAreShownToTheirUserAndAdministratorsOnly) {
  proto::Release release;
  release.lease_id = LeaseId{999};
  ask(kAlice, release);
  EXPECT_THAT(ask(kBob, proto::Events{}), Not(HasSubstr("was refused")));
  EXPECT_THAT(ask(kAlice, proto::Events{}), HasSubstr("the release of a lease was refused"));
  EXPECT_THAT(ask(kRoot, proto::Events{}), HasSubstr("the release of a lease was refused"));
}

// The event tells how much the programs of the user work.
TEST_F(PrivacyTest, HeldBackWorkIsShownToItsUserAndAdministratorsOnly) {
  Recorder::Event event;
  event.type = proto::EventType::kWorkHeldBack;
  event.uid = kAlice;
  event.message = "work of L1 was held back";
  recorder.record(std::move(event));
  EXPECT_THAT(ask(kBob, proto::Events{}), Not(HasSubstr("was held back")));
  EXPECT_THAT(ask(kAlice, proto::Events{}), HasSubstr("was held back"));
  EXPECT_THAT(ask(kRoot, proto::Events{}), HasSubstr("was held back"));
}

// The reason of a refusal shows the limits of the user.
TEST_F(PrivacyTest, LimitsAreShownToTheirUserAndAdministratorsOnly) {
  proto::CheckRequest check;
  check.uid = kAlice;
  check.request.priority = 5;
  EXPECT_THAT(ask(kBob, check), HasSubstr("Denied"));
  for (const uid_t who : {kAlice, kRoot}) {
    EXPECT_THAT(ask(who, check), HasSubstr("priorities up to 0"));
  }
}

TEST_F(PrivacyTest, OwnerAndAdministratorsSeeAllFields) {
  for (const uid_t viewer : {kAlice, kRoot}) {
    const auto answers = everything(viewer);
    for (const std::size_t view : {0u, 1u, 2u}) {
      EXPECT_THAT(answers[view], HasSubstr("secret")) << view;
      EXPECT_THAT(answers[view], HasSubstr("77123")) << view;
    }
    EXPECT_THAT(answers[3], HasSubstr("secret-note"));
  }
}

TEST_F(PrivacyTest, ANoticeOfAFindingIsForItsUserAloneAndNamesNoCommand) {
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[kAlice], HasSubstr("your process 77123 uses GPU 0 without a lease"));
  EXPECT_THAT(notices[kAlice], Not(HasSubstr("secret")));
}

TEST_F(PrivacyTest, SiteCanShowAllFieldsToAll) {
  config.privacy = config::Privacy::kOpen;
  const auto answers = everything(kBob);
  EXPECT_THAT(answers[0], HasSubstr("secret-command"));
  EXPECT_THAT(answers[2], HasSubstr("secret-stray"));
  EXPECT_THAT(answers[3], HasSubstr("secret-note"));
}

}  // namespace
}  // namespace gpurota::daemon
