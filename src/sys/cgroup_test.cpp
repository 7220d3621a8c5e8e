#include "sys/cgroup.h"

#include "base/fd.h"
#include "sys/proc_files.h"
#include "sys/sd_event_loop.h"
#include "sys/system_control_groups.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using namespace std::string_literals;

TEST(CgroupMount, IsFoundWhereverItIsMounted) {
  EXPECT_EQ(
      parse_cgroup_mount("30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"),
      (CgroupMount{"/sys/fs/cgroup", "/"}));
  const char* hybrid =
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(parse_cgroup_mount(hybrid), (CgroupMount{"/sys/fs/cgroup/unified", "/"}));
  EXPECT_EQ(parse_cgroup_mount("9 8 0:1 /docker/ab /mnt/a\\040b\\134c ro - cgroup2 none ro"),
            (CgroupMount{"/mnt/a b\\c", "/docker/ab"}));
}

TEST(CgroupMount, IsAbsentOnVersion1AndInMalformedText) {
  EXPECT_FALSE(parse_cgroup_mount(""));
  EXPECT_FALSE(parse_cgroup_mount("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"));
  EXPECT_FALSE(parse_cgroup_mount(" - cgroup2 "));
  EXPECT_FALSE(parse_cgroup_mount("1 2 3 / /x rw - tmpfs cgroup2 rw\n"));
}

ports::GroupStep step_to_pods(std::string_view name) {
  if (name.starts_with("kubepods")) return ports::GroupStep::kFound;
  return name == "box" ? ports::GroupStep::kSkip : ports::GroupStep::kEnter;
}

TEST(SystemControlGroups, FindsTheFirstGroupThatExistsAndThatNobodyElseCanHaveMade) {
  const testing::TempDir tree;
  std::filesystem::create_directories(tree.file("kubepods/burstable/pod1"));
  std::filesystem::create_directories(tree.file("open/pod1"));
  ASSERT_EQ(::chmod(tree.file("open").c_str(), 0777), 0);
  const auto loop = SdEventLoop::make();
  ASSERT_TRUE(loop);
  SystemControlGroups groups(**loop);
  EXPECT_EQ(groups.root(), "") << "nothing is mounted";
  groups.set_mount(CgroupMount{tree.path(), "/"});
  EXPECT_EQ(groups.root(), tree.path());
  const std::string pod = tree.file("kubepods/burstable/pod1");
  EXPECT_EQ(groups.find({tree.file("kubepods/pod1"), pod, tree.file("kubepods")}), pod);
  EXPECT_EQ(groups.find({tree.file("kubepods/pod1")}), "");
  EXPECT_EQ(groups.find({tree.file("open/pod1")}), "") << "everybody can write there";
  EXPECT_EQ(groups.find({tree.file("kubepods/../kubepods/burstable/pod1")}), "");
  EXPECT_EQ(groups.find({}), "");
}

TEST(SystemControlGroups, ASearchEntersWhatOnlyRootCanWrite) {
  const testing::TempDir tree;
  for (const char* path : {"a/b/kubepods/pod1/kubepods", "a.slice/a-b.slice/kubepods.slice",
                           "kubepods", "box/kubepods", "open/kubepods", "closed/open/kubepods"}) {
    std::filesystem::create_directories(tree.file(path));
  }
  std::filesystem::create_directory_symlink(tree.file("a"), tree.file("link"));
  testing::write_file(tree.file("a/kubepods.file"), "");
  for (const char* path : {"open", "closed/open"}) {
    ASSERT_EQ(::chmod(tree.file(path).c_str(), 0777), 0);
  }
  auto found = search_cgroups(tree.path(), step_to_pods);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), tree.file("kubepods")) << "the highest comes first";
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::string>{tree.file("a.slice/a-b.slice/kubepods.slice"),
                                             tree.file("a/b/kubepods"), tree.file("kubepods")}));
  EXPECT_TRUE(search_cgroups(tree.file("open"), step_to_pods).empty());
  EXPECT_TRUE(search_cgroups(tree.file("none"), step_to_pods).empty());
  EXPECT_TRUE(search_cgroups("", step_to_pods).empty());
}

TEST(SystemControlGroups, ASearchReadsALimitedNumberOfGroups) {
  const testing::TempDir tree;
  for (std::size_t i = 0; i < kMostGroupsSearched; ++i) {
    std::filesystem::create_directories(tree.file("wide/" + std::to_string(i) + "/x"));
  }
  std::filesystem::create_directories(tree.file("wide/0/x/kubepods"));
  std::filesystem::create_directories(tree.file("high/kubepods"));
  EXPECT_EQ(search_cgroups(tree.path(), step_to_pods),
            std::vector<std::string>{tree.file("high/kubepods")});
}

TEST(CgroupDirectory, IsBelowTheMount) {
  const CgroupMount whole{"/sys/fs/cgroup", "/"};
  EXPECT_EQ(cgroup_directory(whole, "0::/user.slice/a.scope\n"),
            "/sys/fs/cgroup/user.slice/a.scope");
  EXPECT_EQ(cgroup_directory(whole, "0::/\n"), "/sys/fs/cgroup");
  EXPECT_EQ(cgroup_directory(whole, "4:memory:/x\n1:name=systemd:/y\n0::/z\n"), "/sys/fs/cgroup/z");
  EXPECT_EQ(cgroup_directory(whole, "4:memory:/x\n"), "");
}

TEST(CgroupDirectory, OfAContainersPartLeavesOutTheContainersName) {
  const CgroupMount part{"/sys/fs/cgroup", "/docker/ab"};
  EXPECT_EQ(cgroup_directory(part, "0::/docker/ab/x\n"), "/sys/fs/cgroup/x");
  EXPECT_EQ(cgroup_directory(part, "0::/docker/ab\n"), "/sys/fs/cgroup");
  EXPECT_EQ(cgroup_directory(part, "0::/docker/abc\n"), "");
  EXPECT_EQ(cgroup_directory(part, "0::/elsewhere\n"), "");
}

TEST(MadeByRoot, OnlyWhereRootAloneMayWrite) {
  EXPECT_TRUE(is_made_by_root("/usr/libpod-a.scope"));
  EXPECT_FALSE(is_made_by_root("/tmp/libpod-a.scope"));
  EXPECT_FALSE(is_made_by_root("/usr/../tmp/libpod-a.scope"));
  EXPECT_FALSE(is_made_by_root("/nowhere/libpod-a.scope"));
  EXPECT_FALSE(is_made_by_root(""));
  if (::geteuid() == 0) return;
  const testing::TempDir ours;
  EXPECT_FALSE(is_made_by_root(ours.path() + "/libpod-a.scope"));
}

TEST(CgroupDirectory, NeverLeadsOutOfTheMount) {
  const CgroupMount whole{"/sys/fs/cgroup", "/"};
  EXPECT_EQ(cgroup_directory(whole, "0::/../other\n"), "");
  EXPECT_EQ(cgroup_directory(whole, "0::/a/../../b\n"), "");
  EXPECT_EQ(cgroup_directory({"/sys/fs/cgroup", "/../.."}, "0::/a\n"), "");
  EXPECT_EQ(cgroup_directory(whole, "0::/a..b/..c\n"), "/sys/fs/cgroup/a..b/..c");
}

TEST(Cgroup, OnlyGroupsNamedByGpurotaAreChanged) {
  const testing::TempDir temp;
  ASSERT_EQ(::mkdir(temp.file("user.slice").c_str(), 0755), 0);
  testing::write_file(temp.file("user.slice") + "/cgroup.kill", "");
  for (const std::string& path :
       {temp.file("user.slice"), ""s, "/"s, "gpurota-1"s, temp.file("user.slice") + "/gpurota-1/..",
        temp.file("../user.slice/gpurota-1")}) {
    EXPECT_EQ(kill_cgroup(path).error().code, Code::kInternal) << path;
    EXPECT_EQ(remove_cgroup(path).error().code, Code::kInternal) << path;
    EXPECT_EQ(enter_cgroup(path, ::getpid(), -1).error().code, Code::kInternal) << path;
  }
  EXPECT_EQ(testing::read_file(temp.file("user.slice") + "/cgroup.kill"), "");
  for (const char* name : {"", "x", "..", "a/gpurota-1", "gpurota-1/x", "gpurota-1/gpurota-2"}) {
    EXPECT_EQ(make_cgroup(temp.path(), name).error().code, Code::kInternal) << name;
  }
}

TEST(Cgroup, KillingOrRemovingAMissingGroupSucceeds) {
  EXPECT_TRUE(kill_cgroup("/nowhere/gpurota-1"));
  EXPECT_TRUE(remove_cgroup("/nowhere/gpurota-1"));
  EXPECT_TRUE(read_cgroup_members("/nowhere/gpurota-1")->empty());
}

TEST(Cgroup, ATreeThatCannotBeChangedIsUnavailableWithTheReason) {
  // Writing to /proc fails as in a read-only cgroupfs.
  const auto made = make_cgroup("/proc/self", "gpurota-1");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUnavailable);
  EXPECT_NE(made.error().message.find("/proc/self"), std::string::npos);
}

// The members' file is an ordinary file here, so nothing is moved.
TEST(Cgroup, ProcessThatHasEndedIsNotMovedByItsNumber) {
  const testing::TempDir temp;
  const std::string group = temp.file("gpurota-1");
  ASSERT_EQ(::mkdir(group.c_str(), 0755), 0);
  testing::write_file(group + "/cgroup.procs", "");
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_TRUE(process);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(enter_cgroup(group, pid, process.get()).error().code, Code::kGone);
  EXPECT_EQ(testing::read_file(group + "/cgroup.procs"), "");
  ::waitpid(pid, nullptr, 0);
  const Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  EXPECT_TRUE(enter_cgroup(group, ::getpid(), self.get()));
  EXPECT_EQ(testing::read_file(group + "/cgroup.procs"), std::to_string(::getpid()));
  EXPECT_EQ(enter_cgroup(temp.file("gpurota-2"), ::getpid(), self.get()).error().code, Code::kGone);
}

TEST(Procfs, ReadsCommands) {
  EXPECT_EQ(parse_cmdline("a\0\0b c\0"s), (std::vector<std::string>{"a", "", "b c"}));
  EXPECT_EQ(parse_cmdline("cut"s), (std::vector<std::string>{"cut"}));
  EXPECT_TRUE(parse_cmdline("").empty());
}

TEST(Procfs, ReadsFilesOfAnySizeUpToTheLimit) {
  const testing::TempDir temp;
  testing::write_file(temp.file("f"), std::string(10000, 'x'));
  EXPECT_EQ(read_whole(temp.file("f"))->size(), 10000u);
  EXPECT_EQ(read_whole(temp.file("f"), 5000)->size(), 5000u);
  EXPECT_FALSE(read_whole(temp.file("none")));
}

}  // namespace
}  // namespace gpurota::sys
