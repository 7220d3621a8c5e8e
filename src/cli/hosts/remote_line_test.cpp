// Words arrive unchanged at the shell of another machine.
#include "cli/hosts/remote_line.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

struct Ran {
  std::string out;
  int code = 0;
};

// Runs the line in this shell, like sshd.
Ran run_by(const std::string& shell, const std::string& line) {
  int ends[2];
  if (::pipe(ends) != 0) return {"no pipe", -1};
  const pid_t pid = ::fork();
  if (pid == 0) {
    (void)::dup2(ends[1], 1);
    (void)::dup2(ends[1], 2);
    (void)::close(ends[0]);
    (void)::execlp(shell.c_str(), shell.c_str(), "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  (void)::close(ends[1]);
  Ran ran;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    ran.out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  (void)::close(ends[0]);
  int status = 0;
  (void)::waitpid(pid, &status, 0);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ran;
}

const std::vector<std::string>& awkward() {
  static const std::vector<std::string> words = {
      "plain",     "",      " ",         "a b",    "it's",     "''",       "\"quoted\"",
      "new\nline", "\n",    "tab\there", "*",      "$HOME",    "${x}",     "$(id)",
      "`id`",      "a\\b",  "\\",        "\\\\",   "\\'",      "'\\",      "!",
      "a!=b",      "~",     "~root",     "#no",    "-n",       "--",       "a;b",
      "a&b",       "a|b",   "<a>",       "(a)",    "{a,b}",    "[ab]",     "a=b",
      "=ls",       "%self", "^a",        "ä→日本", "\x01\x7f", "\xff\xfe", "end\\"};
  return words;
}

TEST(RemoteLine, WordsArriveUnchangedThroughEachShell) {
  std::vector<std::string> words = {"printf", "%s|"};
  std::string expected;
  for (const std::string& word : awkward()) {
    words.push_back(word);
    expected += word + "|";
  }
  for (const char* const shell : {"sh", "bash", "dash", "zsh", "ksh", "fish"}) {
    const std::string found = "command -v " + std::string(shell) + " >/dev/null";
    if (std::system(found.c_str()) != 0) continue;  // NOLINT: the test's own words
    EXPECT_EQ(run_by(shell, remote_line(words)).out, expected) << shell;
  }
}

TEST(RemoteLine, PlainWordsStayReadable) {
  EXPECT_EQ(remote_line({"gpurota", "status", "--json"}), "gpurota status --json");
  EXPECT_EQ(remote_word("--note=a b"), "'--note=a b'");
  EXPECT_EQ(remote_word("it's"), "'it'\\''s'");
  EXPECT_EQ(remote_word("a\\b"), "'a'\\\\'b'");
  EXPECT_EQ(remote_word(""), "''");
}

// A fake gpurota, first on the PATH there.
class RunLine : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "run_line." + std::to_string(::getpid());
    std::filesystem::create_directories(folder_ + "/a b'c");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Ran run(const std::string& gpurota, RemoteRun there, bool is_there = true) {
    std::filesystem::remove(folder_ + "/gpurota");
    if (is_there) {
      std::ofstream(folder_ + "/gpurota") << "#!/bin/sh\n" << gpurota << "\n";
      std::filesystem::permissions(folder_ + "/gpurota", std::filesystem::perms::owner_all);
    }
    there.host = "gpu1";
    const std::string line = "PATH=" + folder_ + ":/usr/bin:/bin; export PATH; " + run_line(there);
    return run_by("sh", line);
  }

  std::string folder_;
};

TEST_F(RunLine, ArgumentsFolderAndExitStatusArePassedOn) {
  const Ran ran =
      run("pwd; printf '%s|' \"$@\"; exit 7",
          {.folder = folder_ + "/a b'c", .arguments = {"run", "--", "a b", "$x", "*", "\n"}});
  EXPECT_EQ(ran.out, folder_ + "/a b'c\nrun|--|a b|$x|*|\n|");
  EXPECT_EQ(ran.code, 7);
}

TEST_F(RunLine, TheExitStatusOfSshItselfIsNeverThatOfGpurota) {
  EXPECT_EQ(run("exit 255", {.arguments = {"run"}}).code, kExitFor255);
  EXPECT_EQ(run("exit 254", {.arguments = {"run"}}).code, 254);
  EXPECT_EQ(run("kill -KILL $$", {.arguments = {"run"}}).code, 128 + SIGKILL);
  EXPECT_EQ(run("kill -INT $$", {.terminal = true, .arguments = {"run"}}).code, 128 + SIGINT);
}

TEST_F(RunLine, MissingPartIsReported) {
  const Ran folder = run("echo no", {.folder = "/no/such", .arguments = {"run"}});
  EXPECT_EQ(folder.out,
            "gpurota: cannot run in /no/such on gpu1: there is no such folder for you; start in a "
            "folder that both machines have\n");
  EXPECT_EQ(folder.code, 125);
  const Ran none = run("", {.arguments = {"run"}}, false);
  EXPECT_EQ(none.out, "gpurota: there is no gpurota on the PATH of gpu1\n");
  EXPECT_EQ(none.code, 125);
}

}  // namespace
}  // namespace gpurota::cli
