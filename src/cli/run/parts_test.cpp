// The parts of `gpurota run` that need no daemon.
#include "cli/exit_codes.h"
#include "cli/run/child.h"
#include "cli/run/environment.h"
#include "cli/run/left_behind.h"
#include "cli/run/lookup.h"
#include "cli/run/signals.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

class Lookup : public ::testing::Test {
 protected:
  std::string make(const std::string& name, mode_t mode) {
    testing::write_file(dir_.file(name), "#!/bin/sh\n");
    EXPECT_EQ(::chmod(dir_.file(name).c_str(), mode), 0);
    return dir_.file(name);
  }
  testing::TempDir dir_;
};

TEST_F(Lookup, TheFirstExecutableOnPathIsTheCommand) {
  ASSERT_EQ(::mkdir(dir_.file("one").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(dir_.file("two").c_str(), 0755), 0);
  make("one/tool", 0644);
  const std::string tool = make("two/tool", 0755);
  const std::string path = dir_.file("none") + ":" + dir_.file("one") + ":" + dir_.file("two");
  EXPECT_EQ(find_command("tool", path.c_str()), tool);
}

TEST_F(Lookup, ANameWithASlashIsAFileAndPathDoesNotMatter) {
  const std::string tool = make("tool", 0755);
  EXPECT_EQ(find_command(tool, nullptr), tool);
}

TEST_F(Lookup, MissingCommandIs127) {
  for (const std::string& name : {std::string("no-such-command"), dir_.file("none"),
                                  make("file", 0755) + "/x", std::string()}) {
    const auto found = find_command(name, dir_.path().c_str());
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().exit_code, kExitNotFound) << name;
  }
}

TEST_F(Lookup, UnexecutableCommandIs126) {
  for (const std::string& name : {make("plain", 0644), dir_.path(), std::string("plain")}) {
    const auto found = find_command(name, dir_.path().c_str());
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().exit_code, kExitCannotExecute) << name;
  }
}

TEST_F(Lookup, NonExecutableFileIsReportedWithTheRemedy) {
  const auto found = find_command(make("plain", 0644), nullptr);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("chmod +x"), std::string::npos) << found.error().message;
}

TEST_F(Lookup, UnsearchableFolderOnPathIsSkipped) {
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(dir_.file("closed").c_str(), 0000), 0);
  const uid_t user = ::geteuid();
  const uid_t seeker = user == 0 ? 65534 : user;  // root may search it
  ASSERT_EQ(::seteuid(seeker), 0);
  const auto found = find_command("no-such-command", dir_.file("closed").c_str());
  ASSERT_EQ(::seteuid(user), 0);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().exit_code, kExitNotFound) << found.error().message;
}

TEST_F(Lookup, UnsetPathMeansTheSystemDefault) { EXPECT_TRUE(find_command("sh", nullptr)); }

proto::Acquire::Reply reply_with(std::vector<proto::Variable> variables,
                                 std::optional<std::string> preload) {
  proto::Acquire::Reply reply;
  reply.environment = std::move(variables);
  reply.preload = std::move(preload);
  return reply;
}

using Variables = std::vector<std::string>;

TEST(CommandEnvironmentTest, InheritedVariablesAreKeptByteForByte) {
  const char* inherited[] = {"A=\xff\n", "odd", "=x", nullptr};
  const auto made = command_environment(inherited, reply_with({}, std::nullopt));
  EXPECT_EQ(made.variables, (Variables{"A=\xff\n", "odd", "=x"}));
  EXPECT_TRUE(made.remarks.empty());
}

TEST(CommandEnvironmentTest, OverriddenVariablesAreReported) {
  const char* inherited[] = {"CUDA_VISIBLE_DEVICES=7", "CUDA_VISIBLE_DEVICES=8",
                             "CUDA_DEVICE_ORDER=PCI_BUS_ID", nullptr};
  const auto made = command_environment(
      inherited, reply_with({{"CUDA_VISIBLE_DEVICES", "0"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}},
                            std::nullopt));
  EXPECT_EQ(made.variables, (Variables{"CUDA_VISIBLE_DEVICES=0", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
  ASSERT_EQ(made.remarks.size(), 1u);
  EXPECT_NE(made.remarks[0].find("was '7'"), std::string::npos);
}

TEST(CommandEnvironmentTest, PreloadGoesInFrontAndNeverTwice) {
  const auto preload_with = [](const char* before) {
    const char* inherited[] = {before, nullptr};
    return command_environment(inherited, reply_with({}, "/l/libgpurota.so")).variables.back();
  };
  EXPECT_EQ(preload_with("A=1"), "LD_PRELOAD=/l/libgpurota.so");
  EXPECT_EQ(preload_with("LD_PRELOAD="), "LD_PRELOAD=/l/libgpurota.so");
  EXPECT_EQ(preload_with("LD_PRELOAD=a.so b.so"), "LD_PRELOAD=/l/libgpurota.so:a.so b.so");
  EXPECT_EQ(preload_with("LD_PRELOAD=a.so:/l/libgpurota.so"), "LD_PRELOAD=a.so:/l/libgpurota.so");
}

TEST(CommandEnvironmentTest, LeaseVariablesAreNotInherited) {
  const char* inherited[] = {"GPUROTA_LEASE=L1",
                             "GPUROTA_TOKEN=secret",
                             "GPUROTA_SOCKET=/run/gpurota/tenant.sock",
                             "GPUROTA_WHOLE=1",
                             "CUDA_VISIBLE_DEVICES=0",
                             "LD_PRELOAD=/old/libgpurota.so:/l/other.so",
                             "APPTAINERENV_GPUROTA_WHOLE=1",
                             "APPTAINERENV_LD_PRELOAD=/old/libgpurota.so",
                             "GPUROTA_NOTICES=0",
                             nullptr};
  const auto made = command_environment(
      inherited, reply_with({{"GPUROTA_LEASE", "L2"}, {"CUDA_VISIBLE_DEVICES", "1"}}, {}));
  EXPECT_EQ(made.variables, (Variables{"LD_PRELOAD=/l/other.so", "GPUROTA_NOTICES=0",
                                       "GPUROTA_LEASE=L2", "CUDA_VISIBLE_DEVICES=1"}));
  for (const std::string& remark : made.remarks)
    EXPECT_EQ(remark.find("secret"), std::string::npos);
}

TEST(CommandEnvironmentTest, PreloadedLibraryIsKeptWithoutALease) {
  const char* inherited[] = {"LD_PRELOAD=/l/libgpurota.so", nullptr};
  EXPECT_EQ(command_environment(inherited, reply_with({}, {})).variables,
            (Variables{"LD_PRELOAD=/l/libgpurota.so"}));
}

TEST(CommandEnvironmentTest, ChosenGpusThatDifferFromTheLeasesAreReported) {
  auto reply = reply_with({{"CUDA_VISIBLE_DEVICES", "1"}}, {});
  reply.lease.gpus = {{.index = 1, .uuid = GpuUuid{"GPU-abcdef"}}};
  const auto said = [&](const char* visible, const char* lease, std::optional<std::string> outer) {
    const char* inherited[] = {visible, lease, nullptr};
    return command_environment(inherited, reply, outer).chosen_gpus;
  };
  EXPECT_NE(said("CUDA_VISIBLE_DEVICES=0", "A=1", {}).find("was '0' and is '1'"),
            std::string::npos);
  EXPECT_NE(said("CUDA_VISIBLE_DEVICES=", "A=1", {}), "");
  EXPECT_NE(said("CUDA_VISIBLE_DEVICES=1,0", "A=1", {}), "");
  for (const char* same : {"CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=GPU-abc", "A=2"}) {
    EXPECT_EQ(said(same, "A=1", {}), "") << same;
  }
  // Set by the lease of the shell, or by the user in that shell.
  EXPECT_EQ(said("CUDA_VISIBLE_DEVICES=0", "GPUROTA_LEASE=L1", {}), "");
  EXPECT_EQ(said("CUDA_VISIBLE_DEVICES=0", "GPUROTA_LEASE=L1", "0"), "");
  EXPECT_NE(said("CUDA_VISIBLE_DEVICES=2", "GPUROTA_LEASE=L1", "0"), "");
}

TEST(LeftBehind, TextHasTheCountAndDependsOnTheCommand) {
  EXPECT_EQ(left_behind_text({"./a"}, 0, true), "");
  EXPECT_EQ(
      left_behind_text({"./a"}, 1, false),
      "1 process that the command left running was ended, as the lease ends with the command");
  EXPECT_EQ(left_behind_text({"/usr/bin/tmux", "new-session", "-d"}, 2, true),
            "2 processes that the command left running were ended, as the lease ends with tmux; "
            "write tmux new-session -d 'gpurota run … -- COMMAND'");
}

TEST(LeftBehind, ProcessPassedToAServerIsInNoLease) {
  EXPECT_NE(left_behind_text({"tmux", "new-session", "-d"}, 0, true).find("is not in the lease; "),
            std::string::npos);
  EXPECT_NE(left_behind_text({"systemd-run", "a"}, {}, true), "");
  EXPECT_EQ(left_behind_text({"systemd-run", "--scope", "a"}, 0, true), "");
  EXPECT_EQ(left_behind_text({"tmux"}, 0, true), "");
  EXPECT_EQ(left_behind_text({"tmux", "new-session", "-d"}, 0, false), "") << "it has failed";
}

TEST(Preload, WithoutTheLibraryNothingIsStarted) {
  const testing::TempDir dir;
  testing::write_file(dir.file("libgpurota.so"), "library");
  EXPECT_TRUE(check_preload(dir.file("libgpurota.so")));
  const auto missing = check_preload(dir.file("missing.so"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("missing.so"), std::string::npos);
}

int wait_for(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

TEST(ChildTest, ExecutesOnlyWhenTold) {
  const testing::TempDir dir;
  const std::string mark = dir.file("mark");
  auto child = Child::fork({"/bin/sh", {"sh", "-c", "echo ran >" + mark + "; exit 7"}, {}},
                           ProgramSignals::current());
  ASSERT_TRUE(child);
  EXPECT_NE(::access(mark.c_str(), F_OK), 0);
  EXPECT_EQ(child->execute(), 0);
  EXPECT_EQ(WEXITSTATUS(wait_for(child->pid())), 7);
  EXPECT_EQ(::access(mark.c_str(), F_OK), 0);
}

TEST(ChildTest, ExecutesNothingWhenAbandoned) {
  const testing::TempDir dir;
  auto child = Child::fork({"/bin/sh", {"sh", "-c", "echo >" + dir.file("mark")}, {}},
                           ProgramSignals::current());
  ASSERT_TRUE(child);
  child->abandon();
  EXPECT_NE(::access(dir.file("mark").c_str(), F_OK), 0);
  EXPECT_EQ(::waitpid(child->pid(), nullptr, WNOHANG), -1);
}

TEST(ChildTest, AFailedExecuteGivesItsErrno) {
  auto child = Child::fork({"/nonexistent/x", {"x"}, {}}, ProgramSignals::current());
  ASSERT_TRUE(child);
  EXPECT_EQ(child->execute(), ENOENT);
  EXPECT_EQ(WEXITSTATUS(wait_for(child->pid())), kExitNotFound);
}

TEST(ChildTest, ScriptWithoutAnInterpreterRunsInTheShell) {
  const testing::TempDir dir;
  testing::write_file(dir.file("script"), "exit $(($1 + 1))\n");
  ASSERT_EQ(::chmod(dir.file("script").c_str(), 0755), 0);
  auto child = Child::fork({dir.file("script"), {"script", "4"}, {}}, ProgramSignals::current());
  ASSERT_TRUE(child);
  EXPECT_EQ(child->execute(), 0);
  EXPECT_EQ(WEXITSTATUS(wait_for(child->pid())), 5);
}

signalfd_siginfo signal_of(int number, int code, pid_t sender) {
  signalfd_siginfo info{};
  info.ssi_signo = static_cast<std::uint32_t>(number);
  info.ssi_code = code;
  info.ssi_pid = static_cast<std::uint32_t>(sender);
  return info;
}

TEST(ForwardedSignals, SignalsFromOtherProcessesAreForwarded) {
  const pid_t command = 1 << 29;  // no process
  EXPECT_TRUE(should_forward(signal_of(SIGTERM, SI_USER, ::getppid()), command));
  EXPECT_TRUE(should_forward(signal_of(SIGINT, SI_USER, 0), command));
  EXPECT_TRUE(should_forward(signal_of(SIGUSR1, SI_QUEUE, ::getppid()), command));
}

TEST(ForwardedSignals, SignalsFromTerminalSelfAndCommandAreNotForwarded) {
  EXPECT_FALSE(should_forward(signal_of(SIGCHLD, CLD_EXITED, 1), 1 << 29));
  EXPECT_FALSE(should_forward(signal_of(SIGPIPE, SI_USER, ::getpid()), 1 << 29));
  // The sender is this process, which is also a child of the command here.
  EXPECT_FALSE(should_forward(signal_of(SIGTERM, SI_USER, ::getpid()), ::getppid()));
  if (::getsid(0) != ::getpid()) {
    EXPECT_FALSE(should_forward(signal_of(SIGINT, SI_KERNEL, 0), 1 << 29));
    EXPECT_FALSE(should_forward(signal_of(SIGHUP, SI_KERNEL, 0), 1 << 29));
  }
}

TEST(ForwardedSignals, DescendantsAreKnown) {
  EXPECT_TRUE(is_descendant(::getpid(), ::getpid()));
  EXPECT_TRUE(is_descendant(::getpid(), ::getppid()));
  EXPECT_FALSE(is_descendant(::getppid(), ::getpid()));
}

TEST(DieOf, EndsByTheSameSignal) {
  EXPECT_EXIT(die_of(SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(die_of(SIGKILL), ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace gpurota::cli
