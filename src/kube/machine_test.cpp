#include "kube/machine.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace gpurota::kube {
namespace {

namespace fs = std::filesystem;

// A machine's /sys with one device, in the kernel's form.
class MachineTest : public ::testing::Test {
 protected:
  void add(const std::string& address, const std::string& place, const std::string& numa) {
    const fs::path device = fs::path(root()) / "sys/devices" / place / address;
    fs::create_directories(device);
    testing::write_file((device / "numa_node").string(), numa + "\n");
    const fs::path all = fs::path(root()) / "sys/bus/pci/devices";
    fs::create_directories(all);
    fs::create_symlink(fs::path("../../../devices") / place / address, all / address);
  }
  std::string root() const { return dir_.path(); }

 private:
  testing::TempDir dir_;
};

TEST_F(MachineTest, FindsAGpuByTheDriversFormOfItsAddress) {
  add("0000:1b:00.0", "pci0000:16/0000:16:02.0", "1");
  EXPECT_EQ(read_pci_place("00000000:1B:00.0", root()),
            (PciPlace{"0000:1b:00.0", "pci0000:16", 1}));
}

TEST_F(MachineTest, LargePciDomainIsKeptAndTheFirstRootIsUsed) {
  add("10000:01:00.0", "pci0000:16/0000:16:00.5/pci10000:00/10000:00:02.0", "0");
  EXPECT_EQ(read_pci_place("00010000:01:00.0", root()).address, "00010000:01:00.0");
  add("0000:02:00.0", "pci0000:16/0000:16:00.5/pci10000:00", "0");
  EXPECT_EQ(read_pci_place("00000000:02:00.0", root()).root, "pci0000:16");
}

TEST_F(MachineTest, AMachineWithoutNumaHasNoNode) {
  add("0000:01:00.0", "pci0000:00", "-1");
  EXPECT_EQ(read_pci_place("00000000:01:00.0", root()),
            (PciPlace{"0000:01:00.0", "pci0000:00", {}}));
}

TEST_F(MachineTest, SymbolUnknownToTheKernelIsShownAsAddress) {
  EXPECT_EQ(read_pci_place("00000000:02:00.0", root()), (PciPlace{"0000:02:00.0", {}, {}}));
}

TEST(LivingTokensTest, AreThoseThatAProcessWasStartedWith) {
  testing::TempDir proc;
  const auto add = [&](const std::string& pid, const std::string& environment) {
    fs::create_directories(fs::path(proc.path()) / pid);
    testing::write_file(proc.file(pid + "/environ"), environment);
  };
  using namespace std::string_literals;
  add("1", "PATH=/\0"s);
  add("20", "A=B\0GPUROTA_TOKEN=aa\0"s);
  add("self", "GPUROTA_TOKEN=bb\0"s);
  fs::create_directories(fs::path(proc.path()) / "21");  // has just ended
  EXPECT_EQ(read_living_tokens({"aa", "bb", "cc"}, proc.path()).value(),
            std::set<std::string>{"aa"});
}

TEST(LivingTokensTest, AreNotKnownWhereProcessesCannotBeRead) {
  testing::TempDir folder;
  EXPECT_FALSE(read_living_tokens({"aa"}, folder.file("not-there")));
}

}  // namespace
}  // namespace gpurota::kube
