#include "daemon/supervised/job_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uid_t kAlice = 1001;
constexpr uid_t kBob = 1002;

class JobRulesTest : public ::testing::Test {
 protected:
  static jobs::JobSpec spec(const std::string& name, std::vector<std::string> after_success = {},
                            std::vector<std::string> after_end = {}) {
    jobs::JobSpec spec;
    spec.name = name;
    spec.command = {"true"};
    spec.after_success = std::move(after_success);
    spec.after_end = std::move(after_end);
    return spec;
  }
  JobEntry& add(jobs::JobSpec spec, uid_t uid = kAlice) {
    const std::uint64_t id = entries.size() + 1;
    return entries
        .emplace(id,
                 JobEntry{{id, uid, "alice", std::move(spec)}, jobs::Supervision(jobs::Policy{})})
        .first->second;
  }
  void end(JobEntry& job, int code) {
    (void)job.life.start(now);
    (void)job.life.on_lease(now);
    (void)job.life.on_exit(now, code, false);
  }
  std::string refusal(const jobs::JobSpec& wanted) {
    const auto may = check_together(entries, kAlice, {{wanted, true}});
    return may ? "" : may.error().message;
  }

  jobs::Moment now{TimePoint(hours(1)), WallTime(hours(1000))};
  JobEntries entries;
};

TEST_F(JobRulesTest, ChainReportsTheJobsItWaitsFor) {
  JobEntry& a = add(spec("a"));
  (void)a.life.start(now);
  add(spec("b"));
  const Chain chain = chain_of(entries, kAlice, spec("c", {"a"}, {"b"}));
  EXPECT_EQ(chain.verdict, jobs::Verdict::kWaits);
  EXPECT_EQ(chain.text,
            "it starts when a has ended well and b has ended; b is stopped and has never run");
  EXPECT_TRUE(*must_wait(entries, kAlice, spec("c", {"a"})));
  end(a, 0);
  EXPECT_EQ(chain_of(entries, kAlice, spec("c", {"a"})).verdict, jobs::Verdict::kMet);
  EXPECT_FALSE(*must_wait(entries, kAlice, spec("c", {"a"})));
}

TEST_F(JobRulesTest, LongChainNamesOnlySomeJobs) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) {
    names.push_back("a" + std::to_string(i));
    (void)add(spec(names.back())).life.start(now);
  }
  const std::string text = chain_of(entries, kAlice, spec("b", {}, names)).text;
  EXPECT_THAT(text, HasSubstr("a6 has ended and 23 other jobs have ended"));
  EXPECT_EQ(text.find("a7"), std::string::npos);
}

TEST_F(JobRulesTest, BrokenChainReportsWhy) {
  end(add(spec("a")), 3);
  const Chain chain = chain_of(entries, kAlice, spec("b", {"a"}));
  EXPECT_EQ(chain.verdict, jobs::Verdict::kNever);
  EXPECT_EQ(chain.text, "a has not ended well: exit status 3");
  EXPECT_THAT(must_wait(entries, kAlice, spec("b", {"a"})).error().message,
              HasSubstr("job b cannot start: a has not ended well: exit status 3"));
  EXPECT_EQ(chain_of(entries, kAlice, spec("b", {}, {"a"})).verdict, jobs::Verdict::kMet);
  EXPECT_EQ(chain_of(entries, kAlice, spec("b", {"gone"})).text, "there is no job gone any more");
  JobEntry& c = add(spec("c", {"a"}));
  (void)c.life.start(now, true);
  c.life.on_chain_broken("a has not ended well");
  EXPECT_EQ(chain_of(entries, kAlice, spec("d", {"c"})).text, "c was cancelled");
}

TEST_F(JobRulesTest, ChainHasJobsOfOneUserOnly) {
  end(add(spec("a"), kBob), 0);
  EXPECT_EQ(chain_of(entries, kAlice, spec("b", {"a"})).verdict, jobs::Verdict::kNever);
  EXPECT_THAT(refusal(spec("b", {"a"})), HasSubstr("there is no such job"));
}

TEST_F(JobRulesTest, CirclesUnknownNamesAndEndlessJobsAreRefused) {
  add(spec("a", {}, {}));
  EXPECT_EQ(refusal(spec("b", {"a"})), "");
  EXPECT_THAT(refusal(spec("b", {"x"})), HasSubstr("after x (--after-success)"));
  EXPECT_THAT(refusal(spec("b", {}, {"x"})), HasSubstr("after x (--after-end)"));
  EXPECT_THAT(refusal(spec("b", {"b"})), HasSubstr("wait for each other for ever"));
  add(spec("b", {"a"}));
  EXPECT_THAT(refusal(spec("a", {}, {"b"})), HasSubstr("wait for each other for ever"));
  jobs::JobSpec always = spec("always");
  always.restart = jobs::RestartPolicy::kAlways;
  add(always);
  EXPECT_THAT(refusal(spec("c", {"always"})), HasSubstr("--after-end always"));
  EXPECT_EQ(refusal(spec("c", {}, {"always"})), "");
  always.name = "a";
  EXPECT_THAT(refusal(always), HasSubstr("job b would wait for ever: a")) << "b waits for it";
}

TEST_F(JobRulesTest, ItemsOfAllArraysAreBoundedAndCannotChange) {
  jobs::JobSpec sweep = spec("sweep");
  sweep.array = jobs::Indices::up_to(10'000);
  sweep.at_once = 4;
  add(sweep);
  jobs::JobSpec other = sweep;
  other.name = "other";
  EXPECT_EQ(refusal(other), "");
  add(other);
  jobs::JobSpec third = spec("third");
  third.array = jobs::Indices::up_to(1);
  third.at_once = 1;
  EXPECT_THAT(refusal(third), HasSubstr("20000 items together, these would be 20001"));
  sweep.at_once = 8;
  EXPECT_EQ(refusal(sweep), "");
  sweep.array = jobs::Indices::up_to(9);
  EXPECT_THAT(refusal(sweep), HasSubstr("the items of job sweep cannot be changed"));
}

TEST_F(JobRulesTest, JobWithWaitingJobsIsRemovedOnlyTogetherWithThem) {
  JobEntry& a = add(spec("a"));
  JobEntry& b = add(spec("b", {"a"}));
  (void)a.life.start(now);
  (void)b.life.start(now, true);
  EXPECT_THAT(named_by(entries, a), ElementsAre(b.id));
  EXPECT_THAT(chained_after(entries, a), ElementsAre(b.id));
  EXPECT_THAT(check_removal(entries, a, true, {}).error().message, HasSubstr("a runs"));
  EXPECT_THAT(check_removal(entries, a, false, {}).error().message,
              HasSubstr("other jobs start after a: b."));
  EXPECT_TRUE(check_removal(entries, a, false, {a.id, b.id}));
  (void)a.life.on_lease(now);
  (void)a.life.on_exit(now, 0, false);
  EXPECT_TRUE(check_removal(entries, a, false, {})) << "its result is in effect";
  (void)b.life.on_chain_met();
  EXPECT_THAT(chained_after(entries, a), IsEmpty());
}

TEST_F(JobRulesTest, JobNamedInABootOrderIsRemovedOnlyWithItsNamers) {
  JobEntry& a = add(spec("a"));
  jobs::JobSpec after = spec("b");
  after.after = {"a"};
  JobEntry& b = add(after);
  EXPECT_FALSE(check_removal(entries, a, false, {}));
  EXPECT_TRUE(check_removal(entries, a, false, {b.id}));
}

}  // namespace
}  // namespace gpurota::daemon
