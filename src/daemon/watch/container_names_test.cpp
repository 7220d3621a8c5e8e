// Engines' files that are read at once, late or never, and podman's monitors.
#include "daemon/watch/container_names.h"

#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"
#include "testing/held_up.h"

#include <gtest/gtest.h>

#include <mutex>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using containers::ContainerName;

const std::string kId(64, 'a');

// What the engines keep, read by the worker's thread.
struct Engines : testing::HeldUp<std::string> {
  std::map<std::string, ContainerName> names;
  int reads = 0;

  ContainerName read(const std::string& id) {
    std::unique_lock lock(mutex());
    ++reads;
    wait(lock, id);
    return names[id];
  }
};

class ContainerNamesTest : public ::testing::Test {
 protected:
  ~ContainerNamesTest() override { engines->let_all_go(); }

  void set(const ContainerName& name, const std::string& id = kId) {
    const std::lock_guard lock(engines->mutex());
    engines->names[id] = name;
  }
  int reads() {
    const std::lock_guard lock(engines->mutex());
    return engines->reads;
  }
  static watch::Container container(const std::string& engine, const std::string& id = kId) {
    return {engine, id, {}, "/group"};
  }
  ContainerName known(const watch::Container& container, pid_t pid = 1) {
    EXPECT_TRUE(loop.run_until([&] { return names.name_of(container, pid).has_value(); }));
    return *names.name_of(container, pid);
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  std::shared_ptr<Engines> engines = std::make_shared<Engines>();
  ContainerNames names{loop, processes,
                       [engines = engines](const std::string& id) { return engines->read(id); }};
};

TEST_F(ContainerNamesTest, IsReadOnceForAWhileAndThenAgain) {
  set({"web", "alpine:3"});
  EXPECT_FALSE(names.name_of(container("docker"), 1)) << "not read yet";
  EXPECT_EQ(known(container("docker")), (ContainerName{"web", "alpine:3"}));
  EXPECT_EQ(reads(), 1);
  set({"shop", "alpine:3"});
  loop.advance(30s);
  EXPECT_EQ(known(container("docker")).name, "web") << "until it is read again";
  EXPECT_TRUE(loop.run_until([&] { return known(container("docker")).name == "shop"; }));
  EXPECT_EQ(reads(), 2);
}

TEST_F(ContainerNamesTest, WhatHasNoIdIsNotReadAbout) {
  EXPECT_EQ(known({"lxc", "box", {}, "/lxc.payload.box"}).name, "box");
  EXPECT_EQ(known({"kubernetes", "", "some-uid", "/kubepods"}), ContainerName());
  EXPECT_EQ(reads(), 0);
}

TEST_F(ContainerNamesTest, APodmanOfAUsersNamesItOnItsMonitorsCommandLine) {
  const pid_t monitor = processes.spawn(
      {.command = {"/usr/bin/conmon", "-c", kId, "-n", "mine"}, .executable = "/usr/bin/conmon"});
  const pid_t shell = processes.spawn({.parent = monitor});
  const pid_t program = processes.spawn({.parent = shell});
  processes.set_command_error(monitor, Code::kUnavailable);
  EXPECT_EQ(known(container("podman"), program).name, "") << "its words are being read";
  processes.set_command_error(monitor, std::nullopt);
  EXPECT_EQ(known(container("podman"), program).name, "mine");
}

TEST_F(ContainerNamesTest, WhatAnotherContainersMonitorSaysIsNotItsName) {
  const pid_t monitor = processes.spawn(
      {.command = {"conmon", "-c", std::string(64, 'b'), "-n", "mine"}, .executable = "/x/conmon"});
  EXPECT_EQ(known(container("podman"), processes.spawn({.parent = monitor})).name, "");
}

TEST_F(ContainerNamesTest, AncestorsAreLookedAtOnceForEachReading) {
  const pid_t program = processes.spawn({.parent = processes.spawn()});
  EXPECT_EQ(known(container("podman"), program).name, "");
  const std::size_t before = processes.reads();
  for (int i = 0; i < 10; ++i) (void)names.name_of(container("podman"), program);
  EXPECT_EQ(processes.reads(), before);
}

TEST_F(ContainerNamesTest, ADiskThatHangsHoldsUpNobody) {
  engines->set_stuck(kId, true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(names.name_of(container("docker"), 1));
    loop.advance(1min);
  }
  EXPECT_LE(reads(), 1) << "one reading at a time";
}

TEST_F(ContainerNamesTest, WhatNobodyAsksForIsForgottenWhenAnotherComes) {
  set({"web", {}});
  EXPECT_EQ(known(container("docker")).name, "web");
  loop.advance(2min);
  (void)names.name_of(container("docker", std::string(64, 'b')), 1);
  EXPECT_FALSE(names.name_of(container("docker"), 1)) << "forgotten, and read anew";
  EXPECT_EQ(known(container("docker")).name, "web");
}

TEST_F(ContainerNamesTest, AreBounded) {
  for (std::size_t i = 0; i <= ContainerNames::kMost; ++i) {
    loop.advance(1ms);
    (void)names.name_of(container("docker", std::to_string(i)), 1);
  }
  EXPECT_TRUE(loop.run_until([&] {
    return names.name_of(container("docker", std::to_string(ContainerNames::kMost)), 1).has_value();
  }));
  EXPECT_FALSE(names.name_of(container("docker", "0"), 1))
      << "the one that was asked for longest ago";
}

}  // namespace
}  // namespace gpurota::daemon
