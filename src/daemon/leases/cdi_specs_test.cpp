#include "daemon/leases/cdi_specs.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "sys/spec_folder.h"
#include "testing/memory_store.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CdiSpecsTest : public FakeWorldTest {
 protected:
  CdiSpecsTest() {
    std::string name = "/dev/shm/gpurota-cdi.XXXXXX";  // in memory, unlike a test's own folder
    if (::mkdtemp(name.data()) != nullptr) folder = name;
    config.containers.cdi = true;
    config.containers.cdi_folder = folder;
    gpus.find(kGpu)->info.device_minor = 3;
    specs = std::make_unique<CdiSpecs>(parts());
  }
  void SetUp() override {
    if (!sys::write_spec(folder + "/tried", "", 4711))
      GTEST_SKIP() << "no access lists in /dev/shm";
    std::filesystem::remove(folder + "/tried");
  }
  ~CdiSpecsTest() override { std::filesystem::remove_all(folder); }
  CdiSpecsTest(const CdiSpecsTest&) = delete;
  CdiSpecsTest& operator=(const CdiSpecsTest&) = delete;

  CdiSpecs::Parts parts() {
    return {loop,
            config,
            gpus,
            world.tables,
            processes,
            "/run/gpurota/tenant.sock",
            "/usr/lib/libgpurota.so",
            machine.path(),
            true};
  }
  void begin() {
    specs->start();
    world.on_lease = [this](const LeaseEntry& entry, bool gone) {
      specs->on_lease_change(entry, gone);
    };
  }
  LeaseId reserve(const std::string& name, LeaseKind kind = LeaseKind::kReservation,
                  uid_t uid = 1000) {
    AcquireRequest request;
    request.uid = uid;
    request.process = processes.id_of(processes.spawn());
    request.placement.memory = SizeSpec{gib(1), 0};
    request.kind = kind;
    request.lasts = 1h;
    request.name = name;
    return (*world.queue.acquire(request))->lease.id;
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  std::string text(const std::string& name) const {
    return testing::read_file(folder + "/" + name);
  }
  void add_driver() const {
    for (const char* path :
         {"/dev/nvidiactl", "/dev/nvidia2", "/dev/nvidia3", "/usr/lib64/libcuda.so.1"}) {
      const std::string file = machine.path() + path;
      std::filesystem::create_directories(std::filesystem::path(file).parent_path());
      testing::write_file(file, "");
    }
  }

  std::string folder = "/nonexistent";
  testing::TempDir machine;
  testing::MemoryStore store;
  lease::GrantBook grants;
  LeaseWorld world{loop, store, processes, gpus, grants, config, [] { return WallTime(1s); }};
  std::unique_ptr<CdiSpecs> specs;
};

TEST_F(CdiSpecsTest, AReservationHasAFileUntilItEnds) {
  begin();
  const LeaseId id = reserve("web");
  EXPECT_THAT(files(), ElementsAre("gpurota.dev-lease_L1.json"));
  EXPECT_EQ(specs->device_of(id), "gpurota.dev/lease=L1");
  const std::string spec = text("gpurota.dev-lease_L1.json");
  EXPECT_THAT(spec, HasSubstr("\"L1\""));
  EXPECT_THAT(spec, HasSubstr(".web\""));
  EXPECT_THAT(spec, HasSubstr("GPUROTA_TOKEN="));
  EXPECT_THAT(spec, HasSubstr("\"/run/gpurota/container\""));
  EXPECT_THAT(spec, HasSubstr("\"/etc/ld.so.preload\""));
  world.leases.end(id, EndCause::kReleased, "");
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(specs->device_of(id), "");
}

TEST_F(CdiSpecsTest, UsersWhoseNamesAreAlikeHaveDevicesOfTheirOwn) {
  processes.set_user(1001, "mal");
  processes.set_user(1002, "mal.lory");
  processes.set_user(1003, "1004");  // the name is another user's uid
  begin();
  reserve("lory.web", LeaseKind::kReservation, 1001);
  reserve("web", LeaseKind::kReservation, 1002);
  reserve("web", LeaseKind::kReservation, 1003);
  EXPECT_THAT(text("gpurota.dev-lease_L1.json"), HasSubstr("\"mal.lory.web\""));
  EXPECT_THAT(text("gpurota.dev-lease_L2.json"), HasSubstr("\"mal..lory.web\""));
  EXPECT_THAT(text("gpurota.dev-lease_L2.json"), Not(HasSubstr("\"mal.lory.web\"")));
  EXPECT_THAT(text("gpurota.dev-lease_L3.json"), Not(HasSubstr(".web\"")));
}

TEST_F(CdiSpecsTest, LeaseOfACommandHasNoFile) {
  begin();
  reserve("train", LeaseKind::kRun);
  EXPECT_TRUE(files().empty());
}

TEST_F(CdiSpecsTest, OnlyTheLeasesGpusAreNamedAndCountedFromZero) {
  add_driver();
  begin();
  reserve("");
  const std::string spec = text("gpurota.dev-lease_L1.json");
  EXPECT_THAT(spec, HasSubstr("\"path\": \"/dev/nvidia3\""));
  EXPECT_THAT(spec, HasSubstr("\"hostPath\": \"" + machine.path() + "/dev/nvidia3\""));
  EXPECT_THAT(spec, HasSubstr("/dev/nvidiactl"));
  EXPECT_THAT(spec, Not(HasSubstr("/dev/nvidia2")));
  EXPECT_THAT(spec, HasSubstr("CUDA_VISIBLE_DEVICES=0"));
  EXPECT_THAT(spec, HasSubstr("libcuda.so.1"));
}

TEST_F(CdiSpecsTest, LibrariesComeFromNvidiasSpecIfThereIsOne) {
  add_driver();
  std::filesystem::create_directories(machine.path() + "/etc/cdi");
  testing::write_file(machine.path() + "/etc/cdi/nvidia.yaml", "");
  begin();
  reserve("");
  EXPECT_THAT(text("gpurota.dev-lease_L1.json"), Not(HasSubstr("libcuda.so.1")));
  EXPECT_THAT(text("gpurota.dev-lease_L1.json"), HasSubstr("/dev/nvidia3"));
}

TEST_F(CdiSpecsTest, AutomaticLeasesAddADeviceForAnyContainer) {
  add_driver();
  config.automatic.enabled = true;
  begin();
  EXPECT_THAT(files(), ElementsAre("gpurota.dev-gpu.json"));
  const std::string spec = text("gpurota.dev-gpu.json");
  EXPECT_THAT(spec, HasSubstr("\"gpurota.dev/gpu\""));
  EXPECT_THAT(spec, HasSubstr("\"any\""));
  EXPECT_THAT(spec, HasSubstr("GPUROTA_CONTAINER=1"));
  EXPECT_THAT(spec, HasSubstr("GPUROTA_RUNTIME_DIR=/run/gpurota/container"));
  EXPECT_THAT(spec, Not(HasSubstr("TOKEN")));
}

TEST_F(CdiSpecsTest, StaleFilesAreRemovedAfterACrashAndForeignFilesStay) {
  begin();
  reserve("");
  const std::string kept = text("gpurota.dev-lease_L1.json");
  testing::write_file(folder + "/gpurota.dev-lease_L77.json", kept);
  testing::write_file(folder + "/gpurota.dev-lease_L78.json.new", "half of it");
  testing::write_file(folder + "/gpurota.dev-lease_L79.json", "of a daemon of another folder");
  testing::write_file(folder + "/nvidia.json", "{}");
  CdiSpecs next(parts());
  next.start();
  EXPECT_THAT(files(), ElementsAre("gpurota.dev-lease_L1.json", "gpurota.dev-lease_L79.json",
                                   "nvidia.json"));
  EXPECT_EQ(text("gpurota.dev-lease_L1.json"), kept);
}

TEST_F(CdiSpecsTest, TurningOffRemovesFilesOfEarlierDaemonsToo) {
  begin();
  reserve("");
  config.containers.cdi = false;
  CdiSpecs(parts()).start();
  EXPECT_TRUE(files().empty());
}

TEST_F(CdiSpecsTest, FolderOnADiskIsRefusedAndReported) {
  config.containers.cdi_folder = "/proc/self/task";
  begin();
  EXPECT_EQ(specs->describe(), "");
  EXPECT_NE(specs->trouble(), "");
  reserve("");
  EXPECT_TRUE(files().empty());
}

TEST_F(CdiSpecsTest, ChangedFolderHasTheFilesAndTheOldOneHasNone) {
  begin();
  reserve("");
  config.containers.cdi_folder = folder + "/new";
  specs->refresh();
  ASSERT_TRUE(loop.run_until(
      [&] { return std::filesystem::exists(folder + "/new/gpurota.dev-lease_L1.json"); }));
  EXPECT_THAT(files(), ElementsAre("new"));
}

}  // namespace
}  // namespace gpurota::daemon
