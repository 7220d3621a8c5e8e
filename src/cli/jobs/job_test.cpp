#include "cli/args/args.h"
#include "cli/args/program_commands.h"
#include "cli/jobs/job_begun.h"
#include "cli/jobs/job_update.h"
#include "cli/jobs/job_view.h"
#include "cli/jobs/job_wait.h"
#include "cli/text/done_text.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobOptions parsed(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"job"};
  all.insert(all.end(), words.begin(), words.end());
  const auto arguments = parse_arguments(all);
  EXPECT_TRUE(arguments) << (arguments ? "" : arguments.error().message);
  const auto* job = arguments ? std::get_if<JobOptions>(&arguments->command) : nullptr;
  EXPECT_NE(job, nullptr);
  return job == nullptr ? JobOptions{} : *job;
}

std::string refusal(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"job"};
  all.insert(all.end(), words.begin(), words.end());
  const auto arguments = parse_arguments(all);
  EXPECT_FALSE(arguments);
  return arguments ? "" : arguments.error().message;
}

TEST(JobArguments, AddTakesItsOwnOptionsAndThoseOfRun) {
  const JobOptions job =
      parsed({"add", "web", "--memory", "8G", "--restart=on-failure", "--env", "TOKEN",
              "--env-file", "e", "--boot-after", "db", "--output=journal", "--workdir", "/srv",
              "--", "python", "--env", "x"});
  EXPECT_EQ(job.name, "web");
  EXPECT_THAT(job.run_options, ElementsAre("--memory", "8G"));
  EXPECT_THAT(job.command, ElementsAre("python", "--env", "x"));
  EXPECT_EQ(job.restart, "on-failure");
  EXPECT_THAT(job.variables, ElementsAre("TOKEN"));
  EXPECT_THAT(job.variable_files, ElementsAre("e"));
  EXPECT_THAT(job.boot_after, ElementsAre("db"));
  EXPECT_FALSE(job.old_after || job.tty);
  EXPECT_EQ(job.output, "journal");
  EXPECT_EQ(job.workdir, "/srv");
}

TEST(JobArguments, OptionsForChainAndTerminalAreParsed) {
  const JobOptions job = parsed({"add", "train", "--after-success", "a,b", "--after-end=c", "--tty",
                                 "--after", "db", "--", "x"});
  EXPECT_THAT(job.after_success, ElementsAre("a,b"));
  EXPECT_THAT(job.after_end, ElementsAre("c"));
  EXPECT_THAT(job.boot_after, ElementsAre("db"));
  EXPECT_TRUE(job.old_after) << "its old name";
  EXPECT_EQ(job.tty, true);
  EXPECT_EQ(parsed({"update", "train", "--no-tty"}).tty, false);
  EXPECT_THAT(parsed({"update", "train", "--after-end", ""}).after_end, ElementsAre(""));
  EXPECT_THAT(refusal({"add", "train", "--no-tty", "--", "x"}), HasSubstr("--no-tty"));
  EXPECT_THAT(refusal({"add", "train", "--after-success"}), HasSubstr("needs a value"));
}

TEST(JobArguments, RemoveAndWaitTakeSeveralNames) {
  EXPECT_THAT(parsed({"remove", "a", "b", "--force", "c"}).others, ElementsAre("b", "c"));
  const JobOptions job = parsed({"wait", "a", "b", "--timeout", "2m"});
  EXPECT_EQ(job.name, "a");
  EXPECT_THAT(job.others, ElementsAre("b"));
  EXPECT_EQ(job.most_wait, 2min);
  EXPECT_THAT(refusal({"wait"}), HasSubstr("which job"));
  EXPECT_THAT(refusal({"wait", "a", "--timeout", "soon"}), HasSubstr("--timeout"));
  EXPECT_THAT(refusal({"stop", "a", "b"}), HasSubstr("unexpected 'b'"));
}

TEST(JobArguments, OptionsForArraysAndItemsAreParsed) {
  const JobOptions job = parsed({"add", "sweep", "--array", "1-50%4", "--memory", "8G", "--", "x"});
  EXPECT_EQ(job.array, "1-50%4");
  EXPECT_THAT(job.run_options, ElementsAre("--memory", "8G"));
  const JobOptions each = parsed(
      {"add-each", "sweep", "-", "--at-once", "4", "--memory=8G", "--restart", "on-failure"});
  EXPECT_EQ(each.name, "sweep");
  EXPECT_EQ(each.file, "-");
  EXPECT_EQ(each.at_once, 4);
  EXPECT_THAT(each.run_options, ElementsAre("--memory=8G"));
  EXPECT_EQ(parsed({"update", "sweep", "--at-once", "2"}).at_once, 2);
  EXPECT_EQ(parsed({"logs", "sweep[7]"}).item, 7);
  EXPECT_EQ(parsed({"cancel", "sweep[0]"}).name, "sweep");
  EXPECT_TRUE(parsed({"restart", "sweep", "--failed"}).failed);
  EXPECT_TRUE(parsed({"list", "--items"}).items);
  EXPECT_THAT(refusal({"add-each", "sweep", "f", "--", "x"}), HasSubstr("leave out"));
  EXPECT_THAT(refusal({"add-each", "sweep"}), HasSubstr("one on each line"));
  EXPECT_THAT(refusal({"add-each", "sweep", "f", "--array", "1-2"}), HasSubstr("--array"));
  EXPECT_THAT(refusal({"add", "sweep", "--array", "1-2", "--at-once", "0", "--", "x"}),
              HasSubstr("--at-once"));
  for (const char* name : {"sweep[", "sweep[]", "sweep[a]", "sweep[1", "sweep[1]x", "sweep[-1]"}) {
    EXPECT_THAT(refusal({"logs", name}), HasSubstr("write NAME[7]")) << name;
  }
  EXPECT_THAT(refusal({"show", "sweep[1]"}), HasSubstr("for whole jobs"));
  EXPECT_THAT(refusal({"restart", "sweep[1]", "--failed"}), HasSubstr("--failed is for all"));
}

TEST(JobArguments, OptionsMayComeBeforeTheName) {
  const JobOptions job =
      parsed({"add", "--note", "first", "-m", "1G", "--nonblock", "--gpus=2", "web", "--", "x"});
  EXPECT_EQ(job.name, "web");
  EXPECT_THAT(job.run_options,
              ElementsAre("--note", "first", "-m", "1G", "--nonblock", "--gpus=2"));
  EXPECT_THAT(refusal({"add", "--memory", "1G", "--", "x"}), HasSubstr("name of the job"));
  EXPECT_THAT(refusal({"add", "web", "--memory", "--", "x"}), HasSubstr("--memory needs a value"));
}

TEST(JobArguments, OptionsUnknownToRunAreRefused) {
  EXPECT_THAT(refusal({"add", "web", "--memry", "8G", "--", "x"}), HasSubstr("--memry"));
  EXPECT_THAT(refusal({"add", "web", "--memory", "much", "--", "x"}), HasSubstr("--memory"));
}

TEST(JobArguments, ValueOfAVariableIsRefused) {
  EXPECT_THAT(refusal({"add", "web", "--env", "TOKEN=hush", "--", "x"}), HasSubstr("--env takes"));
}

TEST(JobArguments, MissingNameOrCommandIsRefused) {
  EXPECT_THAT(refusal({"add", "--", "x"}), HasSubstr("name of the job"));
  EXPECT_THAT(refusal({"add", "web"}), HasSubstr("command last"));
  EXPECT_THAT(refusal({"stop"}), HasSubstr("which job"));
  EXPECT_THAT(refusal({"frobnicate"}), HasSubstr("add, add-each, list"));
}

TEST(JobArguments, OtherActionsAreParsed) {
  EXPECT_TRUE(parsed({"remove", "web", "--force"}).force);
  EXPECT_EQ(parsed({"logs", "web", "-n", "3"}).lines, 3);
  EXPECT_EQ(parsed({"stop", "--user", "alice", "web"}).user, "alice");
  EXPECT_TRUE(parsed({"list", "--json"}).json);
  EXPECT_EQ(parsed({"apply", "-"}).name, "-");
  EXPECT_THAT(refusal({"list", "--jsn"}), HasSubstr("did you mean --json?"));
  EXPECT_THAT(refusal({"logs", "web", "-n", "few"}), HasSubstr("--lines: 'few' is not a number"));
  EXPECT_THAT(refusal({"list", "web", "db"}), HasSubstr("unexpected 'db'"));
  EXPECT_THAT(refusal({"add", "web", "--user", "bob", "--", "x"}), HasSubstr("leave out --user"));
}

TEST(JobArguments, UpdateTakesTheOptionsOfAddAndRequiresNone) {
  const JobOptions job = parsed({"update", "web", "--memory=12G", "--restart", "always"});
  EXPECT_EQ(job.action, "update");
  EXPECT_THAT(job.run_options, ElementsAre("--memory=12G"));
  EXPECT_EQ(parsed({"update", "web", "--user", "al", "--", "x"}).user, "al");
  EXPECT_THAT(refusal({"update", "web"}), HasSubstr("nothing to change"));
  EXPECT_THAT(refusal({"update", "web", "--memory", "1G", "--"}), HasSubstr("no command after"));
}

TEST(JobArguments, OptionsForFilesAndLogsAreParsed) {
  EXPECT_TRUE(parsed({"export", "--with-secrets"}).secrets);
  EXPECT_EQ(parsed({"export", "web"}).name, "web");
  EXPECT_EQ(parsed({"apply", "-"}).name, "-");
  EXPECT_THAT(refusal({"apply"}), HasSubstr("which file"));
  EXPECT_TRUE(parsed({"logs", "-f", "web"}).follow);
  EXPECT_THAT(refusal({"apply", "x", "--user", "al"}), HasSubstr("--user"));
}

TEST(RunWords, EverySpellingIsParsed) {
  const auto words = split_run_words({"-m8G", "--gpus=2", "--nonblock", "--note", "--memory"});
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_THAT(merge_run_words(*words, {}),
              ElementsAre("--memory", "8G", "--gpus", "2", "--nonblock", "--note", "--memory"));
  EXPECT_FALSE(split_run_words({"--memry", "8G"}));
  EXPECT_FALSE(split_run_words({"--memory"}));
}

TEST(RunWords, ChangesReplaceTheSameOptionsAndThoseTheyExclude) {
  const auto before = split_run_words({"--memory", "8G", "--gpu-ids", "0", "--gpu-ids", "1"});
  const auto change = split_run_words({"-m", "12G", "--gpus", "1"});
  EXPECT_THAT(merge_run_words(*before, *change), ElementsAre("--memory", "12G", "--gpus", "1"));
}

TEST(JobUpdate, ReportsWhatAppliesNowAndWhatAtTheNextStart) {
  const auto change = change_options({"--swap", "--memory", "8G"},
                                     {"--priority", "low", "--quantum=5s", "--note", "mine"});
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_THAT(*change->call.options, ElementsAre("--swap", "--memory", "8G", "--priority", "low",
                                                 "--quantum", "5s", "--note", "mine"));
  EXPECT_EQ(change->call.priority, -10);
  EXPECT_EQ(change->call.quantum, "5s");
  EXPECT_EQ(change->call.note, "mine");
  EXPECT_FALSE(change->call.memory) << "it was not told";
  EXPECT_FALSE(change->call.warn_seconds);
  const auto warned = change_options({}, {"--warn", "10m:USR2"});
  ASSERT_TRUE(warned);
  EXPECT_EQ(warned->call.warn_seconds, 600);
  EXPECT_EQ(warned->call.warn_signal, "USR2");
  const auto interactive = change_options({"--memory", "8G"}, {"--latency", "interactive"});
  ASSERT_TRUE(interactive);
  EXPECT_EQ(interactive->call.latency, "interactive");
  EXPECT_TRUE(interactive->now && !interactive->later);
  EXPECT_FALSE(change_options({"--swap"}, {"--filler", "--latency", "interactive"}));
  EXPECT_TRUE(warned->now);
  EXPECT_TRUE(change->now);
  EXPECT_FALSE(change->later);
  const auto both = change_options({"--memory", "8G"}, {"--memory", "12G", "--gpus", "2"});
  ASSERT_TRUE(both);
  EXPECT_TRUE(both->call.memory && both->now && both->later);
  EXPECT_FALSE(change_options({"--memory", "8G"}, {"--quantum", "5s"})) << "it takes no turns";
}

TEST(JobView, ShowsThePositionInTheQueue) {
  proto::Job job;
  job.name = "web";
  job.state = "waiting";
  job.request_id = RequestId{7};
  job.position = 2;
  job.detail = "as an older program shows it";
  job.wait_reason = {.code = proto::ReasonCode::kLeasedUntil,
                     .text = "waits for GPU 1: bob's program (L3) ends at {time}",
                     .time = WallTime(60s),
                     .remedy = "starts now with --swap"};
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const std::string why =
      "waits for GPU 1: bob's program (L3) ends at 00:01:00; starts now with --swap";
  EXPECT_EQ(state_text(job, WallTime(0s)), "waiting as R7, position 2: " + why);
  EXPECT_THAT(job_text({job}, WallTime(0s)), HasSubstr(why));
  const std::string table = jobs_text({ListedJob{job}}, Layout{}, WallTime(0s));
  EXPECT_THAT(table, HasSubstr("waiting (2)"));
  EXPECT_THAT(table, HasSubstr(why));
}

TEST(JobView, SaysHowRunsEnded) {
  proto::JobRun run;
  run.reason = "exited";
  run.code = 3;
  EXPECT_EQ(run_text(run), "exited 3");
  run.reason = "over-limit";
  run.detail = "9 GiB of 8 GiB";
  EXPECT_EQ(run_text(run), "over-limit: 9 GiB of 8 GiB");
}

TEST(JobView, ShowsNamesOfVariablesAndForeignTextMadeSafe) {
  proto::Job job;
  job.name = "web";
  job.state = "waiting";
  job.detail = "2 of 3 GPUs\x1b[31m";
  job.command = {"a b"};
  job.variables = {"TOKEN"};
  const std::string text = job_text({job}, WallTime(0s));
  EXPECT_THAT(text, HasSubstr("TOKEN"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(JobView, LastLinesAreCutFromALog) {
  EXPECT_EQ(last_lines("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(last_lines("a\nb", 1), "b");
  EXPECT_EQ(last_lines("a\n", 5), "a\n");
  EXPECT_EQ(last_lines("", 1), "");
}

TEST(VariableFile, HasAVariableOnEachLine) {
  const gpurota::testing::TempDir dir;
  const std::string file = dir.file("vars");
  gpurota::testing::write_file(file, "# site\n\nA=1\r\nB=a=b \nC=");
  const auto variables = read_variables({file}, {});
  ASSERT_TRUE(variables);
  ASSERT_EQ(variables->size(), 3U);
  EXPECT_EQ(variables->at(0).value, "1");
  EXPECT_EQ(variables->at(1).value, "a=b ");
  EXPECT_EQ(variables->at(2).name, "C");
}

TEST(VariableFile, ErrorNamesTheLineButNoValue) {
  const gpurota::testing::TempDir dir;
  const std::string file = dir.file("vars");
  for (const std::string line : {"export TOKEN=secret", "secret", "=secret", "TOKEN =secret"}) {
    gpurota::testing::write_file(file, "A=1\n" + line + "\n");
    const auto variables = read_variables({file}, {});
    ASSERT_FALSE(variables) << line;
    EXPECT_THAT(variables.error().message, HasSubstr("vars:2: "));
    EXPECT_THAT(variables.error().message, ::testing::Not(HasSubstr("secret")));
  }
  gpurota::testing::write_file(file, std::string("A=1\0"
                                                 "2\n",
                                                 6));
  EXPECT_FALSE(read_variables({file}, {}));
}

TEST(VariableFile, FolderOrEndlessFileIsRefused) {
  const gpurota::testing::TempDir dir;
  EXPECT_THAT(read_variables({dir.path()}, {}).error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(read_variables({"/dev/zero"}, {}).error().message, HasSubstr("too long"));
}

TEST(JobBegun, ReportsTheStartAsFarAsKnown) {
  proto::Job job;
  job.name = "web";
  job.state = "running";
  proto::Lease lease;
  lease.lease_id = LeaseId{7};
  lease.gpus.resize(1);
  EXPECT_EQ(begun_of(job, &lease, WallTime(0s)).text, "web: runs as L7 on " + gpus_text(lease));
  EXPECT_EQ(begun_of(job, nullptr, WallTime(0s)).text,
            "web: it is starting (gpurota job show web)");
  job.state = "waiting";
  job.position = 2;
  job.detail = "for L3";
  EXPECT_EQ(begun_of(job, nullptr, WallTime(0s)).text, "web: in the queue, position 2: for L3");
  job.position.reset();
  EXPECT_EQ(begun_of(job, nullptr, WallTime(0s)).text, "web: waits: for L3");
  EXPECT_FALSE(begun_of(job, nullptr, WallTime(0s)).failed);
}

TEST(JobBegun, SaysWhatAChainWaitsFor) {
  proto::Job job;
  job.name = "train";
  job.state = "waiting";
  job.after_success = {"prepare"};
  job.detail = "it starts when prepare has ended well";
  EXPECT_EQ(begun_of(job, nullptr, WallTime(0s)).text,
            "train: it starts when prepare has ended well");
  job.state = "cancelled";
  job.detail = "prepare was removed";
  EXPECT_EQ(begun_of(job, nullptr, WallTime(0s)).text,
            "train, which was cancelled: prepare was removed");
  EXPECT_TRUE(begun_of(job, nullptr, WallTime(0s)).failed);
}

TEST(JobView, ShowsChainsTimesAndMemory) {
  proto::Job job;
  job.name = "train";
  job.state = "cancelled";
  job.detail = "prepare was removed";
  job.after = {"db"};
  job.after_success = {"prepare", "load"};
  job.after_end = {"other"};
  job.tty = true;
  job.runs.resize(2);
  job.runs[0] = {WallTime(1000s), WallTime(1090s), "exited", 0, std::nullopt, gib(3)};
  job.runs[1] = {std::nullopt, WallTime(2000s), "cannot-start", 0, std::nullopt, std::nullopt};
  const std::string text = job_text({job}, WallTime(3000s));
  EXPECT_THAT(text, HasSubstr("state      cancelled: prepare was removed\n"));
  EXPECT_THAT(text, HasSubstr("after      the success of prepare, load\n"));
  EXPECT_THAT(text, HasSubstr("after      the end of other\n"));
  EXPECT_THAT(text, HasSubstr("boot after db\n"));
  EXPECT_THAT(text, HasSubstr("output     a terminal\n"));
  EXPECT_THAT(text, HasSubstr(" (1 min 30 s, at most 3 GiB): exited 0\n"));
  EXPECT_THAT(text, HasSubstr("run        never to "));
  EXPECT_THAT(jobs_text({ListedJob{job}}, {}, WallTime(3000s)), HasSubstr("prepare was removed"));
}

TEST(JobView, AnArrayIsFoldedAndItsItemsFollow) {
  ListedJob listed;
  proto::Job& job = listed.job;
  job.name = "sweep";
  job.state = "running";
  job.array = "1-50";
  job.at_once = 4;
  job.items = proto::ItemCounts{1, 1, 0, 0, 0, 48};
  job.detail = "1 running, 1 done, 48 wait";
  EXPECT_EQ(count_of(*job.items), 50);
  listed.items.resize(2);
  listed.items[0].index = 1;
  listed.items[0].state = "done";
  listed.items[0].runs.push_back(
      {WallTime(1000s), WallTime(1090s), "exited", 0, std::nullopt, std::nullopt});
  listed.items[1].index = 2;
  listed.items[1].state = "running";
  listed.items[1].since = WallTime(2000s);
  const std::string table = jobs_text({listed}, {}, WallTime(3000s));
  EXPECT_THAT(table, HasSubstr("1 running, 1 done, 48 wait"));
  EXPECT_THAT(table, HasSubstr("50 commands"));
  EXPECT_THAT(table, HasSubstr("sweep[1]"));
  EXPECT_THAT(table, HasSubstr("exited 0"));
  const std::string text = job_text(listed, WallTime(3000s));
  EXPECT_THAT(text, HasSubstr("array      1-50, at most 4 at once\n"));
  EXPECT_THAT(text, HasSubstr("item       1 done: "));
  EXPECT_THAT(text, HasSubstr("(1 min 30 s): exited 0\n"));
  EXPECT_THAT(text, HasSubstr("item       2 running since "));
  EXPECT_EQ(begun_of(job, nullptr, WallTime(3000s)).text, "sweep: 50 items, at most 4 at once");
}

TEST(JobWait, EndsWithTheStatusOfTheLastRun) {
  proto::Job job;
  for (const char* state : {"waiting", "running", "stopping", "backing-off", "something-new"}) {
    job.state = state;
    EXPECT_FALSE(has_ended(job)) << state;
  }
  for (const char* state : {"stopped", "failed", "cancelled"}) {
    job.state = state;
    EXPECT_TRUE(has_ended(job)) << state;
    EXPECT_EQ(exit_status_of(job), 1) << state << ": it has no run";
  }
  job.state = "failed";
  job.runs.resize(1);
  job.runs[0].reason = "exited";
  job.runs[0].code = 7;
  EXPECT_EQ(exit_status_of(job), 7);
  job.runs[0].code = 0;
  EXPECT_EQ(exit_status_of(job), 1) << "failed is not 0";
  job.runs[0].reason = "signalled";
  job.runs[0].code = 9;
  EXPECT_EQ(exit_status_of(job), 137);
  job.runs[0].reason = "unknown";
  EXPECT_EQ(exit_status_of(job), 1);
  job.state = "finished";
  EXPECT_EQ(exit_status_of(job), 0);
  job.state = "stopped";
  EXPECT_EQ(exit_status_of(job), 1);
}

TEST(JobBegun, FailsOnlyIfTheJobCouldNotStart) {
  proto::Job job;
  job.name = "web";
  job.state = "backing-off";
  job.runs.resize(1);
  job.runs[0].reason = "exited";
  job.runs[0].code = 7;
  EXPECT_EQ(begun_of(job, nullptr, WallTime(0s)).text,
            "web, which has failed: exited 7 (gpurota job show web)");
  EXPECT_FALSE(begun_of(job, nullptr, WallTime(0s)).failed)
      << "how a program ends is known only by chance so soon";
  job.runs[0].reason = "cannot-start";
  EXPECT_TRUE(begun_of(job, nullptr, WallTime(0s)).failed);
}

}  // namespace
}  // namespace gpurota::cli
