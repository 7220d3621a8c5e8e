#include "cli/jobs/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

proto::JobDefinition full() {
  proto::JobDefinition job;
  job.name = "web";
  job.command = {"sh", "-c", "echo \"a\\b\" $HOME\n\ttwo\x01\x7f \u20ac", ""};
  job.options = {"--memory", "8G", "--note", "x = [1]"};
  job.workdir = "/srv/a b";
  job.environment = {{"TOKEN", "hush \"hush\""}, {"a.b c", ""}};
  job.variables = {"OTHER"};
  job.restart = "on-failure";
  job.after = {"db"};
  job.after_success = {"prepare", "load"};
  job.after_end = {"other"};
  job.output = "journal";
  job.tty = true;
  job.start = false;
  return job;
}

std::string refusal(const std::string& text) {
  const auto jobs = parse_job_file(text, "jobs.toml");
  EXPECT_FALSE(jobs) << text;
  return jobs ? "" : jobs.error().message;
}

TEST(JobFile, ArraysSurviveTheRoundTrip) {
  proto::JobDefinition sweep;
  sweep.name = "sweep";
  sweep.command = {"x"};
  sweep.restart = "no";
  sweep.array = "1-50";
  sweep.at_once = 4;
  proto::JobDefinition list = sweep;
  list.name = "list";
  list.command.clear();
  list.array.reset();
  list.each.emplace();
  list.each->push_back({{"a", "b \"c\""}});
  list.each->push_back({{"d"}});
  const auto read = parse_job_file(job_file_text({sweep, list}), "jobs.toml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, (std::vector{sweep, list}));
  const std::string head = "[[job]]\nname = \"a\"\n";
  EXPECT_THAT(refusal(head + "each = [\"a\"]\n"), HasSubstr("write a list of commands"));
  EXPECT_THAT(refusal(head + "command = [\"a\"]\nat_once = 0\n"), HasSubstr("from 1 to 256"));
  EXPECT_THAT(refusal(head + "array = \"1-2\"\n"), HasSubstr("a job needs a command"));
}

TEST(JobFile, SurvivesTheRoundTrip) {
  proto::JobDefinition plain;
  plain.name = "db";
  plain.command = {"./db"};
  plain.restart = "no";
  const std::vector<proto::JobDefinition> jobs = {full(), plain, full()};
  auto unique = jobs;
  unique[2].name = "third";
  const auto read = parse_job_file(job_file_text(unique), "jobs.toml");
  ASSERT_TRUE(read) << read.error().message;
  auto again = *read;
  // A section's keys have no order.
  for (auto& job : again) {
    std::sort(job.environment.begin(), job.environment.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }
  EXPECT_EQ(again, unique);
}

// An administrator exports the jobs of others, to a terminal.
TEST(JobFile, ControlCharactersAreEscapedAndSurviveTheRoundTrip) {
  proto::JobDefinition job;
  job.name = "evil";
  job.restart = "no";
  job.command = {"echo",
                 "\x1b]0;pwn\x07 \u009b2J \u202e\u2066evil\u200b \x7f \ufeff\U000E0041 \"\\\t\n"};
  job.environment = {{"A\u009b2J", "\u202evalue"}};
  const std::string text = job_file_text({job});
  for (const std::string_view bad :
       {"\x1b", "\x07", "\x7f", "\u009b", "\u202e", "\u2066", "\u200b", "\ufeff", "\U000E0041"}) {
    EXPECT_EQ(text.find(bad), std::string::npos) << text;
  }
  const auto read = parse_job_file(text, "f");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].command, job.command);
}

TEST(JobFile, TakesTheOldNameOfBootAfterWithAWarning) {
  const std::string good = "[[job]]\nname = 'a'\ncommand = ['x']\n";
  std::string warning;
  const auto jobs = parse_job_file(good + "after = ['db']\n", "f", &warning);
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->at(0).after, std::vector<std::string>{"db"});
  EXPECT_THAT(warning, HasSubstr("f:4: after is called boot_after now"));
  warning.clear();
  ASSERT_TRUE(parse_job_file(good + "boot_after = ['db']\n", "f", &warning));
  EXPECT_EQ(warning, "");
  EXPECT_THAT(refusal(good + "after = ['db']\nboot_after = ['db']\n"),
              HasSubstr("jobs.toml:4: after: it is the old name"));
}

TEST(JobFile, WithoutJobsIsValid) {
  const auto jobs = parse_job_file(job_file_text({}), "jobs.toml");
  ASSERT_TRUE(jobs);
  EXPECT_TRUE(jobs->empty());
}

TEST(JobFile, WithAMistakeIsRefusedWithLineAndKey) {
  const std::string good = "[[job]]\nname = 'a'\ncommand = ['x']\n";
  EXPECT_THAT(refusal(good + "comand = ['x']\n"), HasSubstr("jobs.toml:4: comand: there is no"));
  EXPECT_THAT(refusal(good + "[[job]]\ncommand = ['x']\n"), HasSubstr("jobs.toml:4: name: "));
  EXPECT_THAT(refusal("[[job]]\nname = 'a'\n"), HasSubstr("jobs.toml:1: command: "));
  EXPECT_THAT(refusal(good + "options = ['--memry', '1G']\n"),
              HasSubstr("jobs.toml:4: options: there is no option '--memry'"));
  EXPECT_THAT(refusal(good + "restart = 'daily'\n"), HasSubstr("jobs.toml:4: restart: "));
  EXPECT_THAT(refusal(good + "workdir = 'here'\n"), HasSubstr("jobs.toml:4: workdir: "));
  EXPECT_THAT(refusal(good + "after = 'db'\n"), HasSubstr("jobs.toml:4: after: "));
  EXPECT_THAT(refusal(good + "output = 'mail'\n"), HasSubstr("jobs.toml:4: output: "));
  EXPECT_THAT(refusal(good + "after = ['db', 1]\n"), HasSubstr("jobs.toml:4: after: "));
  EXPECT_THAT(refusal(good + "start = 'yes'\n"), HasSubstr("jobs.toml:4: start: "));
  EXPECT_THAT(refusal(good + "tty = 1\n"), HasSubstr("jobs.toml:4: tty: "));
  EXPECT_THAT(refusal(good + "after_success = 'db'\n"), HasSubstr("jobs.toml:4: after_success: "));
  EXPECT_THAT(refusal(good + good), HasSubstr("jobs.toml:4: name: "));
  EXPECT_THAT(refusal(good + "x ="), HasSubstr("jobs.toml:4"));
  EXPECT_THAT(refusal("[job]\nname = 'a'\n"), HasSubstr("two brackets"));
  EXPECT_THAT(refusal("jobs = 1\n"), HasSubstr("jobs.toml:1: jobs: "));
}

TEST(JobFile, WithAMistakeNamesNoValueOfAVariable) {
  const std::string text =
      refusal("[[job]]\nname = 'a'\ncommand = ['x']\n[job.environment]\nTOKEN = ['hush']\n");
  EXPECT_THAT(text, HasSubstr("jobs.toml:5: TOKEN: "));
  EXPECT_THAT(text, Not(HasSubstr("hush")));
}

}  // namespace
}  // namespace gpurota::cli
