#include "cli/args/args.h"

#include "base/text.h"
#include "cli/args/command_table.h"
#include "cli/exit_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

Arguments parsed(const Words& words) {
  auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments ? *arguments : Arguments{};
}

template <class Options>
Options options_of(const Words& words) {
  const Arguments arguments = parsed(words);
  const auto* options = std::get_if<Options>(&arguments.command);
  EXPECT_NE(options, nullptr);
  return options != nullptr ? *options : Options{};
}

UsageError refused(const Words& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_FALSE(arguments);
  return arguments ? UsageError{} : arguments.error();
}

bool says(const UsageError& error, const std::string& text) {
  return error.message.find(text) != std::string::npos;
}

TEST(RunArguments, EveryOptionIsRead) {
  const auto run = options_of<RunOptions>({"run", "--gpus", "2", "--memory", "8G", "--soft-limit",
                                           "50%", "--note", "a b", "--", "python", "-v", "x"});
  EXPECT_EQ(run.gpus, 2);
  EXPECT_EQ(run.memory, (SizeSpec{gib(8), 0}));
  EXPECT_EQ(run.soft_limit, (SizeSpec{Bytes(), 50}));
  EXPECT_EQ(run.note, "a b");
  EXPECT_EQ(run.command, (Words{"python", "-v", "x"}));
}

TEST(RunArguments, WarningIsATimeWithAnOptionalSignal) {
  const auto warning = [](const std::string& text) {
    return options_of<RunOptions>({"run", "--warn", text, "--", "a"}).warning;
  };
  EXPECT_EQ(warning("10m"), (EndWarning{std::chrono::minutes(10), SIGUSR1}));
  EXPECT_EQ(warning("1h:SIGTERM"), (EndWarning{std::chrono::hours(1), SIGTERM}));
  EXPECT_EQ(options_of<UpdateOptions>({"update", "L1", "--warn", "0"}).warning, EndWarning{});
  EXPECT_TRUE(says(refused({"run", "--warn", "10m:KILL", "--", "a"}), "is not a signal to warn"));
  EXPECT_TRUE(says(refused({"run", "--warn", "25h", "--", "a"}), "at most 24 h before the end"));
  EXPECT_TRUE(says(refused({"run", "--warn", "USR1", "--", "a"}), "--warn"));
  EXPECT_TRUE(says(refused({"run", "--lease", "L1", "--warn", "5m", "--", "a"}), "only"));
}

TEST(RunArguments, ShortOptionsAndEqualsSignsAreTheSame) {
  for (const Words& words : {Words{"run", "-m8G", "-g", "2", "--", "a"},
                             Words{"run", "--memory=8G", "--gpus=2", "--", "a"},
                             Words{"run", "-vm", "8G", "-g2", "--", "a"}}) {
    const auto run = options_of<RunOptions>(words);
    EXPECT_EQ(run.memory, (SizeSpec{gib(8), 0}));
    EXPECT_EQ(run.gpus, 2);
  }
}

TEST(RunArguments, GpuIdsAreSplitAtCommasAndMayBeRepeated) {
  const auto run = options_of<RunOptions>({"run", "--gpu-ids", "0,GPU-6f", "-i", "2", "--", "a"});
  EXPECT_EQ(run.gpu_ids, (Words{"0", "GPU-6f", "2"}));
  EXPECT_TRUE(says(refused({"run", "--gpu-ids", "0,,1", "--", "a"}), "--gpu-ids"));
  EXPECT_TRUE(says(refused({"run", "--gpu-ids", "", "--", "a"}), "--gpu-ids"));
}

TEST(RunArguments, WordsAfterDoubleDashAreTheCommandUnchanged) {
  const Words command = {"--json", "--", "-h", "", "\xff\n"};
  Words words = {"run", "--"};
  words.insert(words.end(), command.begin(), command.end());
  EXPECT_EQ(options_of<RunOptions>(words).command, command);
}

TEST(RunArguments, MissingDashGetsTheCorrectedLine) {
  EXPECT_TRUE(says(refused({"run", "--memory", "8G", "python", "a b.py", "--epochs", "3"}),
                   "gpurota run --memory 8G -- python 'a b.py' --epochs 3"));
  EXPECT_TRUE(says(refused({"run", "make", "--", "-j"}), "gpurota run -- make -- -j"));
  EXPECT_TRUE(says(refused({"-v", "run", "make"}), "gpurota -v run -- make"));
}

TEST(RunArguments, MistakesNameTheOptionAndAreUsageErrors) {
  for (const auto& [words, text] : std::vector<std::pair<Words, std::string>>{
           {{"run"}, "no command"},
           {{"run", "--memory", "8G", "--"}, "no command"},
           {{"run", "--mem", "8G", "--", "a"}, "'--mem'"},
           {{"run", "--memory", "--", "a"}, "--memory needs a value"},
           {{"run", "--wait", "--memory", "1G", "--", "a"}, "--wait needs a value"},
           {{"run", "--wait", "--memory=1G", "--", "a"}, "--wait needs a value"},
           {{"run", "--memory", "8X", "--", "a"}, "--memory"},
           {{"run", "--memory", "-1", "--", "a"}, "--memory"},
           {{"run", "--verbose=yes", "--", "a"}, "--verbose"},
           {{"run", "--gpus", "0", "--", "a"}, "--gpus"},
           {{"run", "--gpus", "99999999999", "--", "a"}, "--gpus"},
           {{"run", "--gpus", "1", "--gpu-ids", "0", "--", "a"}, "--gpu-ids"},
           {{"run", "--soft-limit", "1G", "--", "a"}, "--memory"}}) {
    const UsageError error = refused(words);
    EXPECT_TRUE(says(error, text)) << error.message;
    EXPECT_EQ(error.exit_code, kExitUsage);
  }
}

TEST(Arguments, CommonOptionsMayStandBeforeAndBehindTheCommand) {
  for (const Words& words : {Words{"--runtime-dir", "/r", "-v", "status", "--json"},
                             Words{"status", "--json", "-v", "--runtime-dir=/r"}}) {
    const Arguments arguments = parsed(words);
    EXPECT_EQ(arguments.runtime_dir, "/r");
    EXPECT_TRUE(arguments.verbose);
    EXPECT_TRUE(std::get<StatusOptions>(arguments.command).json);
  }
  EXPECT_EQ(parsed({"--runtime-dir", "run", "status"}).runtime_dir, "run");
}

TEST(Arguments, LeasesAreNamedWithOrWithoutTheL) {
  EXPECT_THAT(options_of<ReleaseOptions>({"release", "L12", "7", "l3"}).leases,
              ::testing::ElementsAre(LeaseId{12}, LeaseId{7}, LeaseId{3}));
  EXPECT_EQ(options_of<PsOptions>({"ps", "L12"}).lease, LeaseId{12});
  const auto container =
      options_of<ContainerArgsOptions>({"container-args", "L7", "--env-file", "e"});
  EXPECT_EQ(container.lease, LeaseId{7});
  EXPECT_EQ(container.format, "docker");
  EXPECT_EQ(container.env_file, "e");
  EXPECT_EQ(
      options_of<ContainerArgsOptions>({"container-args", "L7", "--format", "apptainer"}).env_file,
      "");
  const auto booked = options_of<ReleaseOptions>({"release", "R7", "r8", "L9", "R9x"});
  EXPECT_THAT(booked.bookings, ::testing::ElementsAre(RequestId{7}, RequestId{8}));
  ASSERT_EQ(booked.leases.size(), 2U);
  EXPECT_EQ(booked.leases[1].name, "R9x");
  EXPECT_TRUE(says(refused({"release", "non sense"}), "L12"));
  EXPECT_TRUE(says(refused({"ps", "L0"}), "L12"));
  const auto refused_args = [](std::vector<std::string> words) {
    words.insert(words.begin(), "container-args");
    return refused(words);
  };
  EXPECT_TRUE(says(refused_args({}), "which lease"));
  EXPECT_TRUE(says(refused_args({"L7"}), "--env-file FILE"));
  EXPECT_TRUE(says(refused_args({"L7", "--env-file", "a", "--env-file", "b"}), "one --env-file"));
  EXPECT_TRUE(says(refused_args({"L7", "--format", "apptainer", "--env-file", "a"}), "leave out"));
  EXPECT_TRUE(says(refused_args({"L7", "--env-file", "a", "--service", "x"}), "compose"));
  EXPECT_TRUE(says(refused_args({"L7", "--format", "cdi", "--env-file", "a"}), "leave out"));
  EXPECT_TRUE(says(refused_args({"L7", "--format", "lxc"}), "apptainer"));
}

TEST(Arguments, ReleaseRefusesTwoWaysOfNamingLeases) {
  EXPECT_TRUE(options_of<ReleaseOptions>({"release", "--all"}).all);
  EXPECT_EQ(options_of<ReleaseOptions>({"release", "--gpu-ids", "0,1"}).gpu_ids, (Words{"0", "1"}));
  EXPECT_TRUE(says(refused({"release", "L1", "--all"}), "only one"));
}

TEST(Arguments, UpdateNeedsALeaseAndSomethingToChange) {
  const auto update = options_of<UpdateOptions>({"update", "L1", "--memory", "4G", "--note", ""});
  EXPECT_EQ(update.lease, LeaseId{1});
  EXPECT_EQ(update.memory, (SizeSpec{gib(4), 0}));
  EXPECT_EQ(update.note, "");
  EXPECT_TRUE(says(refused({"update", "--memory", "4G"}), "which lease"));
  EXPECT_TRUE(says(refused({"update", "L1"}), "nothing to change"));
  EXPECT_EQ(refused({"update", "L1"}).exit_code, kExitUsage);
}

TEST(Arguments, HelpIgnoresMistakesAfterIt) {
  EXPECT_EQ(options_of<HelpOptions>({"run", "--help"}).topic, "run");
  EXPECT_EQ(options_of<HelpOptions>({"update", "-h"}).topic, "update");
  EXPECT_EQ(options_of<HelpOptions>({"help", "ps"}).topic, "ps");
  EXPECT_EQ(options_of<HelpOptions>({"--help"}).topic, "");
}

TEST(Arguments, VersionAsOptionAsksNoDaemon) {
  EXPECT_TRUE(options_of<VersionOptions>({"--version"}).client_only);
  EXPECT_FALSE(options_of<VersionOptions>({"version"}).client_only);
}

TEST(Arguments, AProgramInPlaceOfACommandIsShownHowToRun) {
  EXPECT_TRUE(says(refused({"python", "train.py"}), "gpurota run -- python train.py"));
  EXPECT_TRUE(says(refused({"--", "python"}), "gpurota run -- python"));
  EXPECT_TRUE(says(refused({}), "which command"));
  EXPECT_TRUE(says(refused({"status", "extra"}), "'extra'"));
  EXPECT_TRUE(says(refused({"status", "--frob"}), "'--frob'"));
}

TEST(Arguments, MistypedCommandGetsASuggestion) {
  for (const auto& [word, meant] :
       std::vector<std::pair<std::string, std::string>>{{"statsu", "status"},
                                                        {"STATUS", "status"},
                                                        {"Run", "run"},
                                                        {"relase", "release"},
                                                        {"que", "queue"},
                                                        {"rn", "run"},
                                                        {"jobs", "job"},
                                                        {"stat", "status"},
                                                        {"turn", "turns"}}) {
    EXPECT_TRUE(says(refused({word}), "did you mean '" + meant + "'")) << word;
  }
  EXPECT_TRUE(says(refused({"help", "que"}), "did you mean 'queue'"));
  for (const char* program : {"ls", "make", "python", "./train"}) {
    EXPECT_FALSE(says(refused({program}), "did you mean")) << program;
  }
}

TEST(Arguments, TheCorrectedLineIsOneThatWorks) {
  EXPECT_EQ(refused({"runn", "--", "true"}).message,
            "there is no command 'runn': did you mean 'run'?\n  gpurota run -- true");
  EXPECT_EQ(refused({"-v", "relase", "L1"}).message,
            "there is no command 'relase': did you mean 'release'?\n  gpurota -v release L1");
  EXPECT_TRUE(says(refused({"launch", "--memory", "8G", "--", "./a.out"}),
                   "\n  gpurota run --memory 8G -- ./a.out"));
  EXPECT_EQ(refused({"extend", "L5"}).message,
            "there is no command 'extend': did you mean 'update LEASE --for TIME'?");
}

TEST(Arguments, MistypedActionGetsASuggestion) {
  for (const auto& [command, word, meant] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"job", "lst", "job list"},
           {"job", "ls", "job list"},
           {"job", "kill", "job stop"},
           {"job", "rm", "job remove"},
           {"filler", "kill", "filler pause"},
           {"filler", "stop", "filler pause"},
           {"filler", "remov", "filler remove"}}) {
    EXPECT_TRUE(says(refused({command, word}), "did you mean '" + meant + "'")) << word;
  }
  EXPECT_TRUE(says(refused({"job", "frob"}), "use add, add-each, list"));
}

TEST(Arguments, MistypedJobOptionGetsASuggestion) {
  for (const char* action : {"add", "update"}) {
    EXPECT_TRUE(says(refused({"job", action, "web", "--restrat", "always", "--", "true"}),
                     "'--restrat': did you mean --restart?"));
    EXPECT_TRUE(says(refused({"job", action, "web", "--memroy", "8G", "--", "true"}),
                     "'--memroy': did you mean --memory?"));
  }
}

TEST(Arguments, ValueOfAChoiceMustBeOneOfItsWords) {
  EXPECT_TRUE(says(refused({"job", "add", "web", "--restart", "daily", "--", "true"}),
                   "--restart: 'daily' is not no, on-failure or always"));
  EXPECT_TRUE(says(refused({"job", "update", "web", "--output=mail"}), "is not file or journal"));
  EXPECT_TRUE(says(refused({"filler", "add", "fold", "--on-yield", "linger", "--", "true"}),
                   "is not stop or evict"));
  EXPECT_TRUE(says(refused({"set", "-i", "0", "--turns=maybe"}), "is not auto, on or off"));
  EXPECT_EQ(options_of<SetOptions>({"set", "-i", "0", "--turns=on"}).turns, "on");
}

TEST(Arguments, AmountWithoutAUnitGetsASuggestion) {
  for (const Words& words :
       {Words{"run", "--memory", "8", "--", "a"}, Words{"reserve", "-m", "8"},
        Words{"update", "L1", "--memory", "8"}, Words{"job", "add", "web", "-m", "8", "--", "a"},
        Words{"filler", "add", "fold", "-m", "8", "--", "a"},
        Words{"set", "--gpu-ids", "0", "--capacity", "8"}}) {
    EXPECT_TRUE(says(refused(words), "'8' is less than 1 MiB: did you mean 8G?")) << words[0];
  }
  EXPECT_TRUE(says(refused({"status", "--memory-threshold", "1024"}), "did you mean 1024M?"));
  EXPECT_TRUE(options_of<StatusOptions>({"status", "--memory-threshold", "0"}).memory_threshold);
  EXPECT_EQ(options_of<RunOptions>({"run", "-m", "1048576", "--", "a"}).memory->bytes, mib(1));
}

TEST(Arguments, ShortOptionsOfCanhazgpuAreAccepted) {
  const auto reserve =
      options_of<ReserveOptions>({"reserve", "-g", "2", "-d", "2h", "-n", "demo", "-u", "carol"});
  EXPECT_EQ(reserve.gpus, 2);
  EXPECT_EQ(reserve.lasts, std::chrono::hours(2));
  EXPECT_EQ(reserve.note, "demo");
  EXPECT_EQ(reserve.as_name, "carol");
  EXPECT_TRUE(options_of<StatusOptions>({"status", "-j"}).json);
}

TEST(Arguments, QuietMayStandAnywhere) {
  EXPECT_TRUE(parsed({"-q", "release", "L1"}).quiet);
  EXPECT_TRUE(parsed({"release", "L1", "--quiet"}).quiet);
  EXPECT_TRUE(parsed({"job", "stop", "web", "-q"}).quiet);
  EXPECT_TRUE(parsed({"job", "add", "web", "-q", "--", "true"}).quiet);
  EXPECT_FALSE(parsed({"job", "add", "web", "--", "true", "-q"}).quiet);
}

TEST(Arguments, AcceptsOptionNamesOfOtherTools) {
  const std::vector<std::pair<std::string, std::string>> words = {
      {"proclist", "ps"},
      {"allocate", "reserve"},
      {"remove", "job remove"},
      {"nvitop", "top"},
      {"squeue", "queue"},
      {"extend", "update LEASE --for TIME"},
      {"kill", "release' or 'cancel"}};
  for (const auto& [word, here] : words) {
    EXPECT_TRUE(says(refused({word}), "did you mean '" + here + "'")) << word;
  }
  EXPECT_TRUE(says(refused({"run", "-G", "0", "--", "true"}), "did you mean --gpu-ids?"));
  EXPECT_TRUE(says(refused({"run", "--limit", "8G", "--", "true"}), "did you mean --memory?"));
  EXPECT_TRUE(says(refused({"reserve", "--duration=2h"}), "did you mean --for?"));
  EXPECT_TRUE(
      says(refused({"set", "--gpu-ids", "0", "--set-tq", "30"}), "did you mean --quantum?"));
}

TEST(Arguments, MistypedOptionIsRefusedWithASuggestion) {
  EXPECT_TRUE(says(refused({"run", "--memroy", "8G", "--", "true"}), "did you mean --memory?"));
  EXPECT_TRUE(says(refused({"run", "--noblock", "--", "true"}), "did you mean --nonblock?"));
  EXPECT_TRUE(says(refused({"run", "--prio", "high", "--", "true"}), "did you mean --priority?"));
  EXPECT_TRUE(says(refused({"run", "--mem", "8G", "--", "true"}), "did you mean --memory?"));
  EXPECT_TRUE(says(refused({"run", "--gpu", "2", "--", "true"}),
                   "did you mean --gpus or --gpu-ids or --gpu-type or --gpu-class?"));
  EXPECT_TRUE(says(refused({"run", "--for", "2h", "--", "true"}), "did you mean --timeout?"));
  EXPECT_TRUE(says(refused({"status", "-w"}), "did you mean --watch?"));
  EXPECT_FALSE(says(refused({"run", "--frob", "--", "true"}), "did you mean"));
}

TEST(Arguments, TooLongTimeIsReported) {
  EXPECT_TRUE(says(refused({"reserve", "--for", "100000d"}), "--for: '100000d' is more than"));
  EXPECT_TRUE(says(refused({"update", "L1", "--for", "x"}), "--for: 'x' is not a time"));
  EXPECT_TRUE(says(refused({"run", "--timeout", "0", "--", "a"}), "--timeout: '0' is not a time"));
  EXPECT_TRUE(says(refused({"run", "--wait", "x", "--", "a"}), "--wait: 'x' is not a time"));
  EXPECT_TRUE(says(refused({"reserve", "--for", "99999999999d"}), "more than 3660 days"));
}

TEST(Arguments, OptionBeforeItsCommandIsReported) {
  EXPECT_TRUE(says(refused({"--memory", "8G", "run", "--", "a"}), "'--memory'"));
  EXPECT_TRUE(says(refused({"--memory", "8G", "run", "--", "a"}), "after its name"));
}

TEST(Arguments, HelpForAnUnknownCommandIsAnError) {
  EXPECT_TRUE(says(refused({"help", "nonsense"}), "'nonsense'"));
  EXPECT_EQ(std::get<HelpOptions>(parsed({"help", "filler"}).command).topic, "filler");
}

TEST(Arguments, ColourIsChosenBeforeOrBehindTheCommand) {
  for (const Words& words :
       {Words{"--color", "always", "status"}, Words{"status", "--color=always"},
        Words{"--color=always", "job", "list"}}) {
    EXPECT_EQ(parsed(words).color, "always");
  }
  EXPECT_EQ(parsed({"status"}).color, std::nullopt);
  EXPECT_TRUE(says(refused({"status", "--color", "red"}), "'red' is not auto, always or never"));
}

TEST(Arguments, EmptyRuntimeDirectoryIsRefused) {
  EXPECT_TRUE(says(refused({"--runtime-dir=", "status"}), "--runtime-dir"));
  EXPECT_TRUE(says(refused({"--runtime-dir"}), "'gpurota --help'"));
}

TEST(Arguments, ErrorsEscapeForeignText) {
  for (const Words& words :
       {Words{"\x1b[31m"}, Words{"run", "--\x1b[31m"}, Words{"run", "\x1b[31m"},
        Words{"release", "\x1b[31m"}, Words{"run", "--gpus", "\x1b[31m"}}) {
    EXPECT_FALSE(says(refused(words), "\x1b")) << words.back();
  }
}

template <class Options>
Options parsed(const Words& words) {
  auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return std::get<Options>(arguments->command);
}

TEST(Arguments, SwapAndPriorityAreParsed) {
  const auto run =
      parsed<RunOptions>({"run", "--swap", "--memory", "20G", "--priority", "high", "--", "a.out"});
  EXPECT_TRUE(run.swap);
  EXPECT_EQ(run.priority, 10);
  EXPECT_EQ(parsed<ReserveOptions>({"reserve", "--swap", "--priority", "-7"}).priority, -7);
  EXPECT_TRUE(parsed<RunOptions>({"run", "--swap", "--soft-limit", "1G", "--", "a"}).soft_limit);
  EXPECT_TRUE(says(refused({"run", "--priority", "101", "--", "a"}), "--priority"));
  EXPECT_TRUE(says(refused({"run", "--lease", "L1", "--swap", "--", "a"}), "--lease"));
  EXPECT_TRUE(parsed<RunOptions>({"run", "--swap", "--oversize", "-m", "36G", "--", "a"}).oversize);
  EXPECT_TRUE(says(refused({"run", "--oversize", "-m", "36G", "--", "a"}), "--swap"));
  EXPECT_TRUE(says(refused({"reserve", "--swap", "--oversize"}), "--memory"));
}

TEST(Arguments, OnlyALeaseThatSharesItsGpuCanBeInteractive) {
  const auto run = parsed<RunOptions>({"run", "-m8G", "--latency", "interactive", "--", "a"});
  EXPECT_EQ(run.latency, LatencyClass::kInteractive);
  EXPECT_EQ(parsed<ReserveOptions>({"reserve", "-m8G", "--latency=interactive"}).latency,
            LatencyClass::kInteractive);
  EXPECT_EQ(parsed<RunOptions>({"run", "--swap", "--latency", "normal", "--", "a"}).latency,
            LatencyClass::kNormal);
  EXPECT_FALSE(parsed<RunOptions>({"run", "-m8G", "--", "a"}).latency);
  EXPECT_TRUE(says(refused({"run", "--latency", "interactive", "--", "a"}), "add --memory 8G"));
  EXPECT_EQ(parsed<RunOptions>({"run", "--swap", "--latency", "interactive", "--", "a"}).latency,
            LatencyClass::kInteractive);
  EXPECT_TRUE(says(refused({"run", "-m8G", "--filler", "--latency", "interactive", "--", "a"}),
                   "a filler cannot be interactive"));
  EXPECT_TRUE(says(refused({"run", "-m8G", "--latency", "high", "--", "a"}), "--latency"));
  EXPECT_TRUE(says(refused({"run", "--lease", "L1", "--latency", "normal", "--", "a"}), "--lease"));
  EXPECT_EQ(parsed<UpdateOptions>({"update", "L7", "--latency", "normal"}).latency,
            LatencyClass::kNormal);
}

TEST(Arguments, TurnsAndSetAreParsed) {
  EXPECT_TRUE(parsed<TurnsOptions>({"turns", "--json"}).json);
  const auto set = parsed<SetOptions>(
      {"set", "--gpu-ids", "0,1", "--capacity", "24G", "--quantum", "5s", "--turns", "off"});
  EXPECT_EQ(set.gpu_ids.size(), 2u);
  EXPECT_EQ(set.capacity->bytes, gib(24));
  EXPECT_EQ(set.quantum, "5s");
  EXPECT_EQ(set.turns, "off");
  EXPECT_TRUE(says(refused({"set", "--gpu-ids", "0"}), "nothing to set"));
  EXPECT_TRUE(says(refused({"set", "--turns", "on"}), "which GPU"));
}

TEST(Arguments, ReasonForActingOnAnotherUsersLeaseIsParsed) {
  const auto update = parse_arguments({"update", "L7", "--for", "10m", "--reason", "maintenance"});
  EXPECT_EQ(std::get<UpdateOptions>(update->command).reason, "maintenance");
  const auto release = parse_arguments({"release", "L7", "--reason", "new fan"});
  EXPECT_EQ(std::get<ReleaseOptions>(release->command).reason, "new fan");
  const auto cancel = parse_arguments({"cancel", "R7", "--reason", "not today"});
  EXPECT_EQ(std::get<CancelOptions>(cancel->command).reason, "not today");
  EXPECT_FALSE(parse_arguments({"update", "L7", "--reason", "alone"})) << "it changes nothing";
}

TEST(Arguments, NotifyTestTakesAtMostOneUser) {
  EXPECT_FALSE(std::get<NotifyOptions>(parse_arguments({"notify", "--test"})->command).user);
  EXPECT_EQ(std::get<NotifyOptions>(parse_arguments({"notify", "--test", "alice"})->command).user,
            "alice");
  const auto nothing = parse_arguments({"notify"});
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("gpurota notify --test"), std::string::npos);
  EXPECT_FALSE(parse_arguments({"notify", "--test", "alice", "bob"}));
}

TEST(ParkArguments, ParkAndUnparkTakeOneLease) {
  const auto park = options_of<ParkOptions>({"park", "L7"});
  EXPECT_EQ(to_string(park.lease), "L7");
  EXPECT_TRUE(park.parks);
  EXPECT_FALSE(options_of<ParkOptions>({"unpark", "7"}).parks);
  EXPECT_TRUE(says(refused({"park"}), "gpurota park L7"));
  EXPECT_FALSE(parse_arguments({"unpark", "L7", "L8"}));
  EXPECT_TRUE(options_of<ParkOptions>({"unpark", "--no-wait", "L7"}).no_wait);
  EXPECT_EQ(options_of<ParkOptions>({"unpark", "--wait", "2m", "L7"}).wait,
            std::chrono::minutes(2));
  EXPECT_TRUE(says(refused({"unpark", "--wait", "2m", "--no-wait", "L7"}), "exclude each other"));
  EXPECT_FALSE(parse_arguments({"park", "--no-wait", "L7"}));
}

TEST(Help, FitsATerminalAndExplainsEveryCommand) {
  std::vector<std::string_view> topics = {""};
  for (const CommandRow& command : all_commands()) {
    if (!command.help.empty()) topics.push_back(command.name);
  }
  EXPECT_GT(topics.size(), 20u);
  for (const std::string_view topic : topics) {
    const std::string_view text = help_text(topic);
    EXPECT_NE(text.find("usage: gpurota"), std::string_view::npos) << topic;
    EXPECT_EQ(text.back(), '\n');
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      EXPECT_LE(display_width(text.substr(at, end - at)), 79u) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

// The actions of job and filler are parsed by their own code, which must accept every option in the
// table.
TEST(CommandTable, EveryOptionOfAnActionIsTaken) {
  for (const CommandRow& action : all_commands()) {
    const auto space = action.name.find(' ');
    if (space == std::string_view::npos) continue;
    for (const OptionRow& option : action.options) {
      std::vector<std::string> words = {std::string(action.name.substr(0, space)),
                                        std::string(action.name.substr(space + 1)), "web",
                                        std::string(option.name)};
      if (option.flag == nullptr) words.emplace_back("no such value");
      if (action.name.ends_with(" add-each")) words.emplace_back("commands.txt");
      if (action.name.ends_with(" add")) words.insert(words.end(), {"--", "true"});
      const auto parsed = parse_arguments(words);
      if (parsed) continue;
      // A refusal must be about the option's value or something missing, not about the option.
      EXPECT_EQ(parsed.error().message.find("there is no option"), std::string::npos)
          << action.name << ": " << parsed.error().message;
      EXPECT_EQ(parsed.error().message.find("is not an option"), std::string::npos)
          << action.name << ": " << parsed.error().message;
    }
  }
}

TEST(CommandTable, HelpNamesEveryOption) {
  for (const CommandRow& command : all_commands()) {
    for (const OptionRow& option : command.options) {
      if (command.help.empty()) continue;
      EXPECT_NE(command.help.find(option.name), std::string_view::npos)
          << command.name << " " << option.name;
    }
  }
}

TEST(Args, ParsesTheTimeOfABooking) {
  const auto reserve = options_of<ReserveOptions>(
      {"reserve", "--at", "Mon 09:00", "--until", "17:00", "--weekly", "10", "--gpus", "2"});
  EXPECT_EQ(reserve.at, "Mon 09:00");
  EXPECT_EQ(reserve.until, "17:00");
  EXPECT_EQ(reserve.weekly, 10);
  EXPECT_EQ(options_of<RunOptions>({"run", "--until", "18:00", "--", "a"}).until, "18:00");
  const auto release = options_of<ReleaseOptions>({"release", "R7", "L12"});
  EXPECT_THAT(release.bookings, ::testing::ElementsAre(RequestId{7}));
  EXPECT_THAT(release.leases, ::testing::ElementsAre(LeaseId{12}));
  EXPECT_EQ(options_of<CalendarOptions>({"calendar"}).days, 7);
  EXPECT_TRUE(options_of<CalendarOptions>({"calendar", "--ical"}).ical);
  for (const auto& [words, text] : std::vector<std::pair<Words, std::string>>{
           {{"reserve", "--weekly", "3"}, "say with --at"},
           {{"reserve", "--at", "+1h", "--weekly", "61"}, "--weekly"},
           {{"reserve", "--at", "+1h", "--swap"}, "--at cannot be combined with --swap"},
           {{"reserve", "--at", "+1h", "--nonblock"}, "leave out --wait, --nonblock"},
           {{"reserve", "--until", "18:00", "--for", "1h"}, "--until and --for"},
           {{"run", "--until", "18:00", "-t", "1h", "--", "a"}, "--until and --timeout"},
           {{"calendar", "--ical", "--json"}, "not both"},
           {{"calendar", "--days", "0"}, "--days"}}) {
    EXPECT_TRUE(says(refused(words), text)) << refused(words).message;
  }
}

TEST(Args, OptionsForTheKindOfGpuAreParsed) {
  const auto run =
      parsed<RunOptions>({"run", "--gpu-type", "h100", "--min-memory", "40G", "--min-cc", "8.6",
                          "--near", "L3", "--gpu-class", "big", "--", "a"});
  EXPECT_EQ(run.gpu_class, "big");
  EXPECT_EQ(run.gpu_type, "h100");
  EXPECT_EQ(run.min_memory, gib(40));
  EXPECT_EQ(run.min_cc, 86);
  EXPECT_EQ(run.near, LeaseId{3});
  EXPECT_EQ(parsed<RunOptions>({"run", "--min-cc", "9", "--", "a"}).min_cc, 90);
  for (const char* text : {"8.", ".6", "8.66", "sm_80", "-1", "100.0"}) {
    EXPECT_TRUE(says(refused({"run", "--min-cc", text, "--", "a"}), "--min-cc 8.0")) << text;
  }
  EXPECT_TRUE(says(refused({"run", "--min-memory", "50%", "--", "a"}), "as 40G"));
  EXPECT_TRUE(
      says(refused({"run", "--gpu-ids", "0", "--gpu-type", "h100", "--", "a"}), "leave out"));
  EXPECT_TRUE(
      says(refused({"run", "--gpu-ids", "0", "--gpu-class", "big", "--", "a"}), "leave out"));
  EXPECT_TRUE(says(refused({"run", "--lease", "L1", "--near", "L3", "--", "a"}), "--timeout"));
}

}  // namespace
}  // namespace gpurota::cli
