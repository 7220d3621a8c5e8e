// Tests which device files a program in a control group can open. Root makes the group and the
// device files. Their numbers have no driver: opening an allowed file fails with ENXIO, and opening
// a forbidden one with EPERM.
#include "sys/device_program.h"

#include "base/fd.h"
#include "sys/cgroup.h"
#include "sys/system_processes.h"
#include "testing/fake_event_loop.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

// Reserved for experiments (Documentation/admin-guide/devices.txt): no driver uses it.
constexpr unsigned kMajor = 240;

// Runs the program as the kernel does when a process opens a device.
bool may_open(const DeviceFences& fences, int access, int kind, unsigned major, unsigned minor) {
  const std::vector<bpf_insn> code = device_program(fences);
  const std::map<int, unsigned> context = {
      {0, static_cast<unsigned>((access << 16) | kind)}, {4, major}, {8, minor}};
  std::array<unsigned, 11> registers{};
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bpf_insn& insn = code[at];
    unsigned& to = registers.at(insn.dst_reg);
    const auto value = static_cast<unsigned>(insn.imm);
    const auto jump = [&](bool goes) {
      if (goes) at += static_cast<std::size_t>(insn.off);
    };
    EXPECT_GE(insn.off, 0) << "a loop";
    switch (insn.code) {
      case BPF_LDX | BPF_MEM | BPF_W:
        to = context.at(insn.off);
        break;
      case BPF_ALU64 | BPF_MOV | BPF_X:
        to = registers.at(insn.src_reg);
        break;
      case BPF_ALU64 | BPF_MOV | BPF_K:
        to = value;
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        to &= value;
        break;
      case BPF_ALU | BPF_RSH | BPF_K:
        to >>= value;
        break;
      case BPF_JMP | BPF_JA:
        jump(true);
        break;
      case BPF_JMP32 | BPF_JEQ | BPF_K:
        jump(to == value);
        break;
      case BPF_JMP32 | BPF_JNE | BPF_K:
        jump(to != value);
        break;
      case BPF_JMP32 | BPF_JLT | BPF_K:
        jump(to < value);
        break;
      case BPF_JMP32 | BPF_JGT | BPF_K:
        jump(to > value);
        break;
      case BPF_JMP | BPF_EXIT:
        return registers[0] != 0;
      default:
        ADD_FAILURE() << "an instruction " << int(insn.code);
        return false;
    }
  }
  ADD_FAILURE() << "the program has no end";
  return false;
}
bool may_read(const DeviceFences& fences, unsigned major, unsigned minor) {
  return may_open(fences, BPF_DEVCG_ACC_READ, BPF_DEVCG_DEV_CHAR, major, minor);
}

TEST(DeviceProgram, FencedProcessOpensOnlyNamedDevices) {
  const DeviceFences fences = {{195, 0, 247, {1, 4}}, {234, 3, 90, {60}}};
  for (unsigned minor = 0; minor < 256; ++minor) {
    EXPECT_EQ(may_read(fences, 195, minor), minor == 1 || minor == 4 || minor > 247) << minor;
    EXPECT_EQ(may_read(fences, 234, minor), minor < 3 || minor == 60 || minor > 90) << minor;
    EXPECT_TRUE(may_read(fences, 1, minor));
  }
}

TEST(DeviceProgram, RefusesReadingAndWritingOfCharacterDevicesAndNothingElse) {
  const DeviceFences fences = {{195, 0, 247, {}}};
  for (const int access :
       {BPF_DEVCG_ACC_READ + 0, BPF_DEVCG_ACC_WRITE + 0, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE,
        BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_WRITE}) {
    EXPECT_FALSE(may_open(fences, access, BPF_DEVCG_DEV_CHAR, 195, 0)) << access;
    EXPECT_TRUE(may_open(fences, access, BPF_DEVCG_DEV_BLOCK, 195, 0)) << access;
  }
  EXPECT_TRUE(may_open(fences, BPF_DEVCG_ACC_MKNOD, BPF_DEVCG_DEV_CHAR, 195, 0));
}

TEST(DeviceProgram, JumpsReachTheEndOfTheLongestProgram) {
  DeviceFence fence{195, 0, 99999, {}};
  for (unsigned minor = 0; minor + 4 < kMaxOpenDevices; ++minor) fence.open.insert(minor);
  EXPECT_TRUE(may_read({fence}, 195, 0));
  EXPECT_FALSE(may_read({fence}, 195, kMaxOpenDevices));
  fence.open.insert(kMaxOpenDevices);
  EXPECT_EQ(set_device_program("/sys/fs/cgroup", {fence}).error().code, Code::kLimit);
}

TEST(DeviceProgram, OfAGroupThatIsGoneIsAnError) {
  EXPECT_EQ(set_device_program("/sys/fs/cgroup/gpurota-nowhere", {{1, 2, 3, {}}}).error().code,
            Code::kGone);
}

// A child in a control group of its own, and device files kMajor:0 and kMajor:1.
class DeviceProgramInAGroup : public ::testing::Test {
 protected:
  void SetUp() override {
    for (unsigned minor = 0; minor < 2; ++minor) {
      if (::mknod(file(minor).c_str(), S_IFCHR | 0666, ::makedev(kMajor, minor)) != 0) {
        GTEST_SKIP() << "needs root: it makes device files";
      }
    }
    if (const int error = opened(::getpid(), 0); error != ENXIO) {
      GTEST_SKIP() << "needs device files that can be opened here: error " << error;
    }
    auto made = child_group(::getpid(), "gpurota-test");
    if (!made) GTEST_SKIP() << "needs a writable cgroup v2";
    group_ = *made;
    const auto set = set_device_program(group_, {{kMajor, 0, 9, {1}}});
    if (!set && set.error().code == Code::kDenied) GTEST_SKIP() << set.error().message;
    ASSERT_TRUE(set) << set.error().message;
  }
  ~DeviceProgramInAGroup() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    if (!group_.empty()) (void)remove_cgroup(group_);
  }

  std::string file(unsigned minor) const { return dir_.file("gpu" + std::to_string(minor)); }
  // Makes a group below the group of `parent`, with a waiting child of this test in it.
  Result<std::string> child_group(pid_t parent, const std::string& name) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
    children_.push_back(pid);
    const std::string own = processes_.cgroups().of(parent);
    if (own.empty()) return fail(Code::kUnavailable, "no cgroup v2");
    GPUROTA_ASSIGN_OR_RETURN(std::string group,
                             make_cgroup(own, name + "-" + std::to_string(::getpid())));
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    GPUROTA_TRY(enter_cgroup(group, pid, process.get()));
    return group;
  }
  // The error when the process in the group of `pid` opens a device; 0 if it succeeds.
  int opened(pid_t pid, unsigned minor) {
    const pid_t opener = ::fork();
    if (opener == 0) {
      const std::string procs = processes_.cgroups().of(pid) + "/cgroup.procs";
      const Fd members(::open(procs.c_str(), O_WRONLY | O_CLOEXEC));
      if (pid != ::getppid() && (!members || ::write(members.get(), "0", 1) != 1)) ::_exit(255);
      const Fd device(::open(file(minor).c_str(), O_RDWR | O_CLOEXEC));
      ::_exit(device ? 0 : errno);
    }
    int status = 0;
    ::waitpid(opener, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  testing::TempDir dir_;
  testing::FakeEventLoop loop_;
  SystemProcesses processes_{loop_};
  std::vector<pid_t> children_;
  std::string group_;
};

TEST_F(DeviceProgramInAGroup, AppliesToRoot) {
  EXPECT_EQ(opened(children_[0], 0), EPERM);
  EXPECT_EQ(opened(children_[0], 1), ENXIO) << "there is no driver, but it may";
  EXPECT_EQ(opened(::getpid(), 0), ENXIO) << "outside of the group";
}

TEST_F(DeviceProgramInAGroup, IsReplacedAndRemoved) {
  ASSERT_TRUE(set_device_program(group_, {{kMajor, 0, 9, {0}}}));
  EXPECT_EQ(opened(children_[0], 0), ENXIO);
  EXPECT_EQ(opened(children_[0], 1), EPERM);
  for (int i = 0; i < 2; ++i) {
    const auto taken = set_device_program(group_, {});
    EXPECT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(opened(children_[0], 1), ENXIO);
  }
}

TEST_F(DeviceProgramInAGroup, InnermostGroupDecides) {
  const auto inner = child_group(children_[0], "gpurota-inner");
  ASSERT_TRUE(inner) << inner.error().message;
  EXPECT_EQ(opened(children_[1], 0), EPERM) << "as above";
  const auto set = set_device_program(*inner, {{kMajor, 0, 9, {0}}});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(opened(children_[1], 0), ENXIO);
  EXPECT_EQ(opened(children_[1], 1), EPERM);
}

}  // namespace
}  // namespace gpurota::sys
