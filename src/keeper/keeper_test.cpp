// The keeper as the daemon uses it: the program itself, with a stand-in for `gpurota run`.
#include "base/fd.h"
#include "jobs/log_reader.h"
#include "jobs/record.h"
#include "keeper/log_fd.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() {
    const std::string script = dir_.file("gpurota");
    gpurota::testing::write_file(
        script, "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n");
    (void)::chmod(script.c_str(), 0755);
    (void)::chmod(dir_.path().c_str(), 0755);
    orders_.uid = ::geteuid();
    orders_.user = ::getpwuid(::geteuid())->pw_name;
    orders_.gpurota = script;
    orders_.runtime_dir = "/nowhere";
    orders_.spec.name = "job";
    orders_.spec.workdir = "/";
  }

  void start(std::vector<std::string> command) {
    orders_.spec.command = std::move(command);
    gpurota::testing::write_file(dir_.file(jobs::kOrdersFile), encode(orders_));
    keeper_ = ::fork();
    if (keeper_ == 0) {
      ::execl(GPUROTA_KEEPER, "gpurota-keeper", dir_.path().c_str(), static_cast<char*>(nullptr));
      ::_exit(126);
    }
  }
  // Like the child of a daemon that was started with SIGCHLD ignored.
  void start_where_the_end_of_children_is_ignored(std::vector<std::string> command) {
    const auto before = std::signal(SIGCHLD, SIG_IGN);
    start(std::move(command));
    (void)std::signal(SIGCHLD, before);
  }
  jobs::KeeperReport wait() {
    int status = 0;
    (void)::waitpid(keeper_, &status, 0);
    EXPECT_EQ(status, 0);
    const auto report = jobs::decode_report(gpurota::testing::read_file(dir_.file("report")));
    EXPECT_TRUE(report);
    return report.value_or(jobs::KeeperReport{});
  }
  jobs::KeeperReport run(std::vector<std::string> command) {
    start(std::move(command));
    return wait();
  }
  std::string log() {
    const Fd directory(::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY));
    auto a = LogFd::open(directory.get(), jobs::kLogFiles[0]);
    auto b = LogFd::open(directory.get(), jobs::kLogFiles[1]);
    return jobs::read_log(*a, *b, SIZE_MAX)->text;
  }

  gpurota::testing::TempDir dir_;
  jobs::KeeperOrders orders_;
  pid_t keeper_ = 0;
};

TEST_F(KeeperTest, ReportsTheEndEvenIfSigchldWasIgnored) {
  start_where_the_end_of_children_is_ignored({"sh", "-c", "exit 4"});
  EXPECT_EQ(wait().code, 4);
}

TEST_F(KeeperTest, ReportsTheExitCodeAndKeepsTheOutputOfBothStreams) {
  const auto report = run({"sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(report, (jobs::KeeperReport{false, 7, ""}));
  EXPECT_EQ(log(), "out\nerr\n");
}

TEST_F(KeeperTest, ReportsTheSignalThatEndedIt) {
  EXPECT_EQ(run({"sh", "-c", "kill -SEGV $$"}), (jobs::KeeperReport{true, SIGSEGV, ""}));
}

TEST_F(KeeperTest, PassesArgumentsExactly) {
  (void)run({"printf", "%s|", "a b", "", "\xff", "$HOME"});
  EXPECT_EQ(log(), "a b||\xff|$HOME|");
}

TEST_F(KeeperTest, CommandGetsACleanEnvironmentAndItsVariables) {
  (void)::setenv("SECRET_OF_THE_DAEMON", "x", 1);
  orders_.spec.environment = {{"TOKEN", "a=b"}, {"PATH", "/bin:/usr/bin"}};
  (void)run({"env"});
  (void)::unsetenv("SECRET_OF_THE_DAEMON");
  EXPECT_THAT(log(), HasSubstr("TOKEN=a=b\n"));
  EXPECT_THAT(log(), HasSubstr("PATH=/bin:/usr/bin\n"));
  EXPECT_THAT(log(), HasSubstr("USER=" + orders_.user + "\n"));
  EXPECT_THAT(log(), HasSubstr("GPUROTA_RUNTIME_DIR=/nowhere\n"));
  EXPECT_THAT(log(), Not(HasSubstr("SECRET")));
}

TEST_F(KeeperTest, PythonOutputIsUnbufferedUnlessTheOwnerSetsIt) {
  (void)run({"sh", "-c", "echo \"[$PYTHONUNBUFFERED]\""});
  EXPECT_EQ(log(), "[1]\n");
  orders_.spec.environment = {{"PYTHONUNBUFFERED", ""}};
  (void)run({"sh", "-c", "echo \"[$PYTHONUNBUFFERED]\""});
  EXPECT_EQ(log(), "[1]\n[]\n");
}

TEST_F(KeeperTest, CommandsTerminalPassesLinesUnchanged) {
  orders_.spec.tty = true;
  const auto report = run({"sh", "-c",
                           "test -t 1 && test -t 2 && test ! -t 0 && echo \"$TERM\" && "
                           "stty size </dev/tty; cat; printf 'no line end' >/dev/tty; exit 5"});
  EXPECT_EQ(report.code, 5);
  EXPECT_EQ(log(), "xterm-256color\n24 80\nno line end");
}

TEST_F(KeeperTest, KeepsAllOutputOfATerminal) {
  orders_.spec.tty = true;
  EXPECT_EQ(run({"seq", "1", "20000"}).code, 0);
  EXPECT_THAT(log(), ::testing::EndsWith("\n19999\n20000\n"));
  EXPECT_EQ(log().size(), 108894U);
}

TEST_F(KeeperTest, CommandGetsNoLeaseVariablesOfTheShell) {
  orders_.spec.environment = {{"GPUROTA_LEASE", "L1"},
                              {"GPUROTA_TOKEN", "t"},
                              {"GPUROTA_SOCKET", "/s"},
                              {"GPUROTA_WHOLE", "1"},
                              {"A", "b"}};
  const auto report = run({"sh", "-c", "env | grep -E '^(GPUROTA_(LEASE|TOKEN|SOCKET|WHOLE)|A)='"});
  EXPECT_EQ(report.code, 0);
  EXPECT_EQ(log(), "A=b\n");
}

TEST_F(KeeperTest, ShowsNoVariableInAnyArgv) {
  orders_.spec.environment = {{"TOKEN", "hush-hush"}};
  (void)run({"sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline; tr '\\0' ' ' < /proc/$$/cmdline"});
  EXPECT_THAT(log(), HasSubstr("gpurota-keeper"));
  EXPECT_THAT(log(), Not(HasSubstr("hush")));
}

TEST_F(KeeperTest, CommandGetsUsualSignalsAndLimits) {
  (void)::signal(SIGPIPE, SIG_IGN);
  (void)run({"sh", "-c",
             "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status; umask; ulimit -n"});
  (void)::signal(SIGPIPE, SIG_DFL);
  EXPECT_THAT(log(), HasSubstr("SigIgn:\t0000000000000000"));
  EXPECT_THAT(log(), HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(log(), HasSubstr("0022\n"));
}

TEST_F(KeeperTest, PassesSigtermToTheCommand) {
  start({"sh", "-c", "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.05; done"});
  while (log() != "ready\n") (void)::usleep(5'000);
  (void)::kill(keeper_, SIGTERM);
  EXPECT_EQ(wait().code, 3);
  EXPECT_EQ(log(), "ready\nasked\n");
}

TEST_F(KeeperTest, KillsACommandThatIgnoresSigterm) {
  start({"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"});
  while (log() != "ready\n") (void)::usleep(5'000);
  (void)::kill(keeper_, SIGTERM);
  (void)::kill(keeper_, SIGQUIT);
  EXPECT_EQ(wait(), (jobs::KeeperReport{true, SIGKILL, ""}));
}

TEST_F(KeeperTest, EndsEvenIfTheOutputStaysOpen) {
  EXPECT_EQ(run({"sh", "-c", "sleep 20 & echo done"}).code, 0);
  EXPECT_EQ(log(), "done\n");
}

TEST_F(KeeperTest, ALogNeverGrowsPastItsBound) {
  EXPECT_EQ(
      run({"sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 60000000; echo end"})
          .code,
      0);
  struct stat a = {}, b = {};
  (void)::stat(dir_.file("log.a").c_str(), &a);
  (void)::stat(dir_.file("log.b").c_str(), &b);
  EXPECT_LE(a.st_size + b.st_size, 16 << 20);
  EXPECT_TRUE(log().ends_with("end\n"));
}

TEST_F(KeeperTest, AFullDiskCostsOutputAndNothingElse) {
  const std::string place = dir_.file("disk");
  (void)::mkdir(place.c_str(), 0700);
  if (::geteuid() != 0 || ::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "only root can have a small disk";
  }
  orders_.spec.command = {"sh", "-c", "yes 01234567890123456789 | head -c 2000000; exit 7"};
  gpurota::testing::write_file(place + "/orders", encode(orders_));
  keeper_ = ::fork();
  if (keeper_ == 0) {
    ::execl(GPUROTA_KEEPER, "gpurota-keeper", place.c_str(), static_cast<char*>(nullptr));
    ::_exit(126);
  }
  int status = 0;
  (void)::waitpid(keeper_, &status, 0);
  EXPECT_EQ(status, 0);
  const auto report = jobs::decode_report(gpurota::testing::read_file(place + "/report"));
  (void)::umount2(place.c_str(), MNT_DETACH);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(*report, (jobs::KeeperReport{false, 7, ""}));
}

// Mounts an empty /run, with `listener` as journald's socket if there is one.
bool make_journal(int listener) {
  if (::mount("tmpfs", "/run", "tmpfs", 0, "mode=755") != 0) return false;
  if (listener < 0) return true;
  (void)::mkdir("/run/systemd", 0755);
  (void)::mkdir("/run/systemd/journal", 0755);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, "/run/systemd/journal/stdout");
  return ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::chmod(address.sun_path, 0666) == 0 && ::listen(listener, 1) == 0;
}

// Runs the keeper in its own mount namespace: other processes are not affected.
class MachineTest : public KeeperTest {
 protected:
  // False: the test cannot run here.
  bool start_in(const std::function<bool()>& enter, std::vector<std::string> command) {
    if (::geteuid() != 0 || ::getpwnam("nobody") == nullptr) return false;
    orders_.uid = ::getpwnam("nobody")->pw_uid;
    orders_.user = "nobody";
    orders_.spec.command = std::move(command);
    gpurota::testing::write_file(dir_.file(jobs::kOrdersFile), encode(orders_));
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) return false;
    keeper_ = ::fork();
    if (keeper_ == 0) {
      const bool there = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         enter();
      (void)!::write(ready[1], there ? "y" : "n", 1);
      if (!there) ::_exit(0);
      ::execl(GPUROTA_KEEPER, "gpurota-keeper", dir_.path().c_str(), static_cast<char*>(nullptr));
      ::_exit(126);
    }
    (void)::close(ready[1]);
    char there = 'n';
    (void)!::read(ready[0], &there, 1);
    (void)::close(ready[0]);
    if (there == 'n') (void)::waitpid(keeper_, nullptr, 0);
    return there == 'y';
  }
  bool start_with_journal(int listener) {
    orders_.spec.output = jobs::Output::kJournal;
    return start_in([=] { return make_journal(listener); }, {"sh", "-c", "echo out; echo err >&2"});
  }
};

TEST_F(MachineTest, OutputGoesToTheJournalUnderItsOwner) {
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!start_with_journal(listener.get())) GTEST_SKIP() << "needs root and a mount namespace";
  const Fd stream(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(stream);
  ucred who = {};
  socklen_t size = sizeof who;
  ASSERT_EQ(::getsockopt(stream.get(), SOL_SOCKET, SO_PEERCRED, &who, &size), 0);
  EXPECT_EQ(who.uid, orders_.uid);
  std::string said;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(stream.get(), buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<std::size_t>(n));
  }
  EXPECT_TRUE(said.starts_with("gpurota-job-job\n")) << said;
  EXPECT_TRUE(said.ends_with("\nout\nerr\n")) << said;
  EXPECT_EQ(wait(), (jobs::KeeperReport{false, 0, ""}));
  EXPECT_EQ(log(), "");
}

TEST_F(MachineTest, DoesNotStartWithoutAJournalAndReportsWhy) {
  if (!start_with_journal(-1)) GTEST_SKIP() << "needs root and a mount namespace";
  EXPECT_THAT(wait().cannot_start, HasSubstr("the journal"));
}

// Mounts a file with this text over `path`.
bool put_text(const char* path, const std::string& text) {
  if (::mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755") != 0) return false;
  gpurota::testing::write_file("/mnt/file", text);
  return ::mount("/mnt/file", path, nullptr, MS_BIND, nullptr) == 0;
}

TEST_F(MachineTest, DoesNotRunForAnAccountThatHasExpired) {
  const auto enter = [] { return put_text("/etc/shadow", "nobody:*:1:::::2:\n"); };
  if (!start_in(enter, {"true"})) GTEST_SKIP() << "needs root and a mount namespace";
  EXPECT_THAT(wait().cannot_start, HasSubstr("the account nobody has expired"));
}

TEST_F(MachineTest, JobThatHangsBeforeItsCommandCanBeEnded) {
  const std::string accounts = dir_.file("accounts");
  ASSERT_EQ(::mkfifo(accounts.c_str(), 0600), 0);
  const auto enter = [&] {
    sigset_t term;  // blocked, as the daemon starts it
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    return ::sigprocmask(SIG_BLOCK, &term, nullptr) == 0 &&
           ::mount(accounts.c_str(), "/etc/passwd", nullptr, MS_BIND, nullptr) == 0;
  };
  if (!start_in(enter, {"true"})) GTEST_SKIP() << "needs root and a mount namespace";
  // The keeper reads, and gets nothing.
  const Fd silence(::open(accounts.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(silence);
  ASSERT_EQ(::kill(keeper_, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(keeper_, &status, 0), keeper_);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST_F(MachineTest, CommandHasAllGroupsOfItsOwner) {
  const auto enter = [] { return put_text("/etc/group", "gpus:x:4242:nobody\n"); };
  if (!start_in(enter, {"id", "-G"})) GTEST_SKIP() << "needs root and a mount namespace";
  EXPECT_EQ(wait(), (jobs::KeeperReport{false, 0, ""}));
  EXPECT_EQ(log(), std::to_string(::getpwnam("nobody")->pw_gid) + " 4242\n");
}

TEST_F(MachineTest, CommandHasTheLimitsOfItsOwnersLogin) {
  const auto enter = [] {
    if (::mount("tmpfs", "/etc/security", "tmpfs", 0, "mode=755") != 0) return false;
    gpurota::testing::write_file("/etc/security/limits.conf",
                                 "* - nofile 800\nnobody soft nofile 700\nnobody - core 0\n");
    return true;
  };
  if (!start_in(enter, {"sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -Hc"})) {
    GTEST_SKIP() << "needs root and a mount namespace";
  }
  EXPECT_EQ(wait(), (jobs::KeeperReport{false, 0, ""}));
  EXPECT_EQ(log(), "700\n800\n0\n");
}

TEST_F(KeeperTest, AppendsToTheLogOfTheLastRun) {
  (void)run({"echo", "one"});
  (void)run({"echo", "two"});
  EXPECT_EQ(log(), "one\ntwo\n");
}

TEST_F(KeeperTest, SaysWhatIsWrongWithTheWorkingDirectory) {
  orders_.spec.workdir = "/there/is/none";
  EXPECT_THAT(run({"true"}).cannot_start, HasSubstr("entering its working directory"));
}

TEST_F(KeeperTest, DoesNotRunForAUidWhoseNameHasChanged) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root starts commands of others";
  orders_.user = "somebody-else";
  EXPECT_THAT(run({"true"}).cannot_start, HasSubstr("was somebody-else when the job was added"));
}

TEST_F(KeeperTest, DoesNotRunForAnAccountThatIsGone) {
  orders_.uid = 3'999'999'999;
  EXPECT_THAT(run({"true"}).cannot_start, HasSubstr("no longer an account"));
}

TEST_F(KeeperTest, OneThatIsNotRootNeedsNoAccountForItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  constexpr uid_t kNobodysUid = 3'999'999'998;
  const std::string place = dir_.file("own");
  orders_.uid = kNobodysUid;
  orders_.user = std::to_string(kNobodysUid);
  orders_.spec.command = {"sh", "-c", "id -u; id -g; echo $HOME $USER"};
  const auto run_as_it = [&](const char* home) {
    (void)::mkdir(place.c_str(), 0700);
    gpurota::testing::write_file(place + "/orders", encode(orders_));
    EXPECT_EQ(::chown(place.c_str(), kNobodysUid, kNobodysUid), 0);
    EXPECT_EQ(::chown((place + "/orders").c_str(), kNobodysUid, kNobodysUid), 0);
    keeper_ = ::fork();
    if (keeper_ == 0) {
      (void)::setenv("HOME", home, 1);
      const bool is_it =
          ::setgroups(0, nullptr) == 0 && ::setgid(kNobodysUid) == 0 && ::setuid(kNobodysUid) == 0;
      if (is_it)
        ::execl(GPUROTA_KEEPER, "gpurota-keeper", place.c_str(), static_cast<char*>(nullptr));
      ::_exit(126);
    }
    int status = 0;
    (void)::waitpid(keeper_, &status, 0);
    EXPECT_EQ(status, 0);
    return jobs::decode_report(gpurota::testing::read_file(place + "/report"))
        .value_or(jobs::KeeperReport{false, -1, "no report"});
  };
  EXPECT_EQ(run_as_it("/tmp"), (jobs::KeeperReport{false, 0, ""}));
  EXPECT_THAT(gpurota::testing::read_file(place + "/log.a"),
              HasSubstr("\n3999999998\n3999999998\n/tmp 3999999998\n"));
  // The uid may get an account with a name later: it is still the same user.
  orders_.user = "somebody";
  EXPECT_EQ(run_as_it("relative"), (jobs::KeeperReport{false, 0, ""}));
  EXPECT_THAT(gpurota::testing::read_file(place + "/log.a"), HasSubstr("\n/ somebody\n"));
  // Another uid is another user.
  orders_.uid = kNobodysUid - 1;
  EXPECT_THAT(run_as_it("/tmp").cannot_start, HasSubstr("no longer an account"));
}

TEST_F(KeeperTest, RunsAsItsOwnerAndNothingElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const passwd* nobody = ::getpwnam("nobody");
  ASSERT_NE(nobody, nullptr);
  orders_.uid = nobody->pw_uid;
  orders_.user = "nobody";
  EXPECT_EQ(run({"sh", "-c", "id -u; id -ru; id -g; id -G; grep CapEff /proc/self/status"}).code,
            0);
  const std::string uid = std::to_string(nobody->pw_uid), gid = std::to_string(nobody->pw_gid);
  EXPECT_EQ(log(), uid + "\n" + uid + "\n" + gid + "\n" + gid + "\nCapEff:\t0000000000000000\n");
}

TEST_F(KeeperTest, EntersItsWorkingDirectoryWithItsOwnersRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  orders_.uid = ::getpwnam("nobody")->pw_uid;
  orders_.user = "nobody";
  orders_.spec.workdir = dir_.file("ours");
  (void)::mkdir(orders_.spec.workdir.c_str(), 0700);
  EXPECT_THAT(run({"true"}).cannot_start, HasSubstr("Permission denied"));
}

TEST_F(KeeperTest, TheRunEndsWithAKeeperThatIsKilled) {
  start({"sh", "-c", "echo $$; exec sleep 60"});
  while (log().find('\n') == std::string::npos) (void)::usleep(5'000);
  const pid_t command = std::atoi(log().c_str());
  (void)::kill(keeper_, SIGKILL);
  (void)::waitpid(keeper_, nullptr, 0);
  // The command is gone, or is a zombie that its new parent has not reaped yet.
  for (int i = 0; i < 2'000 && ::kill(command, 0) == 0; ++i) {
    const std::string stat =
        gpurota::testing::read_file("/proc/" + std::to_string(command) + "/stat");
    if (stat.find(") Z ") != std::string::npos) return;
    (void)::usleep(5'000);
  }
  EXPECT_NE(::kill(command, 0), 0);
}

}  // namespace
}  // namespace gpurota::keeper
