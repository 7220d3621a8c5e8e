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
const std::string kGroup = "/user.slice/libpod-" + kId;

// The engines' files, read by the worker's thread.
struct Engines : testing::HeldUp<std::string> {
  std::map<std::string, ContainerName> names;
  int reads = 0;

  ContainerFiles read(const std::string& group) {
    std::unique_lock lock(mutex());
    ++reads;
    wait(lock, group);
    return {names[group], owner};
  }
  uid_t owner = 1000;
};

class ContainerNamesTest : public ::testing::Test {
 protected:
  ~ContainerNamesTest() override { engines->let_all_go(); }

  void set(const ContainerName& name, const std::string& group = kGroup) {
    const std::lock_guard lock(engines->mutex());
    engines->names[group] = name;
  }
  int reads() {
    const std::lock_guard lock(engines->mutex());
    return engines->reads;
  }
  static watch::Container container(const std::string& engine, const std::string& group = kGroup) {
    return {engine, kId, {}, group};
  }
  // The monitor of the container kId, with this name for it.
  pid_t monitor(const std::string& name, uid_t uid = 1000, const std::string& id = kId) {
    return processes.spawn({.uid = uid,
                            .command = {"/usr/bin/conmon", "-c", id, "-n", name},
                            .executable = "/usr/bin/conmon"});
  }
  ContainerName known(const watch::Container& container, pid_t pid = 1) {
    EXPECT_TRUE(loop.run_until([&] { return names.name_of(container, pid).has_value(); }));
    return *names.name_of(container, pid);
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  std::shared_ptr<Engines> engines = std::make_shared<Engines>();
  ContainerNames names{loop, processes, [engines = engines](const watch::Container& container) {
                         return engines->read(container.group);
                       }};
};

TEST_F(ContainerNamesTest, NameIsReadAgainAfterAWhile) {
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

TEST_F(ContainerNamesTest, ProcessWithoutContainerIdIsNotQueried) {
  EXPECT_EQ(known({"lxc", "box", {}, "/lxc.payload.box"}).name, "box");
  EXPECT_EQ(known({"kubernetes", "", "some-uid", "/kubepods"}), ContainerName());
  EXPECT_EQ(reads(), 0);
}

TEST_F(ContainerNamesTest, RootlessPodmansNameIsReadFromItsMonitor) {
  set({"", "alpine:3"});
  const pid_t conmon = monitor("mine");
  const pid_t program = processes.spawn({.parent = processes.spawn({.parent = conmon})});
  processes.set_command_error(conmon, Code::kUnavailable);
  EXPECT_FALSE(names.name_of(container("podman"), program));
  EXPECT_TRUE(loop.run_until([&] { return reads() == 1; }));
  loop.advance(1s);
  EXPECT_FALSE(names.name_of(container("podman"), program)) << "its words are being read";
  processes.set_command_error(conmon, std::nullopt);
  EXPECT_EQ(known(container("podman"), program), (ContainerName{"mine", "alpine:3"}));
}

TEST_F(ContainerNamesTest, NameStaysWhileItIsReadAgainOrCannotBeRead) {
  const pid_t conmon = monitor("mine");
  const pid_t program = processes.spawn({.parent = conmon});
  EXPECT_EQ(known(container("podman"), program).name, "mine");
  for (const Code code : {Code::kUnavailable, Code::kTimeout}) {
    processes.set_command_error(conmon, code);
    const int before = reads();
    loop.advance(30s);
    EXPECT_TRUE(loop.run_until([&] {
      (void)names.name_of(container("podman"), program);
      return reads() > before;
    }));
    loop.advance(1s);
    EXPECT_EQ(known(container("podman"), program).name, "mine") << static_cast<int>(code);
  }
}

TEST_F(ContainerNamesTest, AMonitorOfAnotherUserOrContainerIsNotBelieved) {
  EXPECT_EQ(known(container("podman"), processes.spawn({.parent = monitor("x", 1001)})).name, "");
  const pid_t other = processes.spawn({.parent = monitor("x", 1000, std::string(64, 'b'))});
  EXPECT_EQ(known(container("podman", "/other"), other).name, "");
  const pid_t roots = processes.spawn({.parent = monitor("roots", 0)});
  EXPECT_EQ(known(container("podman", "/third"), roots).name, "roots");
}

TEST_F(ContainerNamesTest, TwoGroupsWithOneIdAreTwoContainers) {
  set({"web", {}}, "/system.slice/docker-" + kId);
  EXPECT_EQ(known(container("docker", "/system.slice/docker-" + kId)).name, "web");
  EXPECT_EQ(known(container("docker", "/user.slice/docker-" + kId)).name, "");
}

TEST_F(ContainerNamesTest, AncestorsAreReadOnceForEachReading) {
  const pid_t conmon = monitor("mine");
  const pid_t program = processes.spawn({.parent = processes.spawn({.parent = conmon})});
  processes.set_command_error(conmon, Code::kUnavailable);
  EXPECT_TRUE(loop.run_until([&] {
    (void)names.name_of(container("podman"), program);
    return reads() == 1;
  }));
  loop.advance(1s);
  (void)names.name_of(container("podman"), program);
  const std::size_t before = processes.reads();
  for (int i = 0; i < 10; ++i) (void)names.name_of(container("podman"), program);
  EXPECT_LE(processes.reads(), before + 10) << "the monitor's words, and nothing else";
}

TEST_F(ContainerNamesTest, HangingDiskDelaysNobody) {
  engines->set_stuck(kGroup, true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(names.name_of(container("docker"), 1));
    loop.advance(1min);
  }
  EXPECT_LE(reads(), 1) << "one reading at a time";
}

TEST_F(ContainerNamesTest,
       AreBoundedAndOfFurtherOnesNothingIsKnownUntilOthersAreNotAskedForAnyMore) {
  set({"web", {}});
  const auto number = [](std::size_t i) { return container("docker", std::to_string(i)); };
  for (std::size_t i = 0; i < ContainerNames::kMost; ++i) (void)names.name_of(number(i), 1);
  EXPECT_TRUE(loop.run_until([&] { return reads() == static_cast<int>(ContainerNames::kMost); }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(names.name_of(container("docker"), 1), ContainerName()) << "no room";
  }
  EXPECT_EQ(reads(), static_cast<int>(ContainerNames::kMost));
  loop.advance(2min);
  EXPECT_EQ(known(container("docker")).name, "web");
}

}  // namespace
}  // namespace gpurota::daemon
