#include "base/proc_stat.h"

#include <gtest/gtest.h>

#include <string>

#include <sys/prctl.h>
#include <unistd.h>

namespace gpurota {
namespace {

std::string line(const std::string& name) {
  return "123 (" + name +
         ") S 77 123 1 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 987654321 1000 200 "
         "18446744073709551615 1\n";
}

TEST(ProcStat, ReadsStateParentAndStart) {
  const auto stat = parse_proc_stat(line("bash"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 123);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 77);
  EXPECT_EQ(stat->start_ticks, 987654321u);
}

TEST(ProcStat, AProgramsNameCannotForgeTheOtherFields) {
  for (const char* name : {"a) R 1 1 (b", ") Z 1", "((", "x y\nz", ""}) {
    const auto stat = parse_proc_stat(line(name));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->parent, 77) << name;
    EXPECT_EQ(stat->start_ticks, 987654321u) << name;
  }
}

TEST(ProcStat, RefusesWhatIsCutOrMalformed) {
  const std::string whole = line("x");
  for (const std::string& text :
       {std::string(), std::string("123"), std::string("123 (x) S"),
        whole.substr(0, whole.find("987654321")),
        std::string("abc (x) S 1 2 3 4 5 6 7 8 9 1 1 1 1 1 1 1 1 1 1 1 1"),
        std::string("1 (x) S a 2 3 4 5 6 7 8 9 1 1 1 1 1 1 1 1 1 1 1 1")}) {
    EXPECT_FALSE(parse_proc_stat(text)) << text;
  }
}

TEST(ProcUids, ProgramNameCannotForgeTheUids) {
  const auto uids =
      parse_proc_uids("Name:\tx\\nUid:\t7\nState:\tS\nUid:\t1000\t33\t0\t0\nGid:\t5\n");
  ASSERT_TRUE(uids);
  EXPECT_EQ(uids->real, 1000u);
  EXPECT_EQ(uids->effective, 33u);
  for (const char* cut : {"", "Name:\tx\n", "Name:\tx\nUid:\t", "Name:\tx\nUid:\t1000",
                          "Name:\tx\nUid:\t1000\t", "Name:\tx\nUid:\tx\t1\n"}) {
    EXPECT_FALSE(parse_proc_uids(cut)) << cut;
  }
  const auto own = read_proc_uids(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->real, ::getuid());
  EXPECT_EQ(own->effective, ::geteuid());
  EXPECT_FALSE(read_proc_uids(-1));
}

TEST(ProcStat, ReadsOurOwnEvenWithAnOddName) {
  char old[16];
  ASSERT_EQ(::prctl(PR_GET_NAME, old), 0);
  ASSERT_EQ(::prctl(PR_SET_NAME, ") Z 1 ("), 0);
  const auto stat = read_proc_stat(::getpid());
  ::prctl(PR_SET_NAME, old);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, ::getpid());
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_GT(stat->start_ticks, 0u);
  EXPECT_FALSE(read_proc_stat(-1));
}

}  // namespace
}  // namespace gpurota
