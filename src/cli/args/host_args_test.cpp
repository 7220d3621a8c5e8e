// Which hosts a command line names, and what is passed on to them.
#include "cli/args/host_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

HostsOptions parsed(const std::vector<std::string>& words, const OwnDefaults& defaults = {}) {
  const auto arguments = parse_arguments(words, defaults);
  if (!arguments) {
    ADD_FAILURE() << arguments.error().message;
    return {};
  }
  const auto* hosts = std::get_if<HostsOptions>(&arguments->command);
  if (hosts == nullptr) ADD_FAILURE() << "no command for other machines";
  return hosts != nullptr ? *hosts : HostsOptions{};
}

std::string mistake(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  return arguments ? "none" : arguments.error().message;
}

TEST(HostArgs, HostsKeepTheirOrderWithoutRepetitions) {
  const HostsOptions options = parsed({"status", "--host", "b,a@c", "--host=b", "--host", "d"});
  EXPECT_EQ(options.command, "status");
  EXPECT_EQ(options.hosts, (std::vector<std::string>{"b", "a@c", "d"}));
  EXPECT_EQ(options.options, std::vector<std::string>{});
  EXPECT_FALSE(options.file);
}

TEST(HostArgs, CommandWithoutHostsIsUnchanged) {
  const auto arguments = parse_arguments({"status"});
  ASSERT_TRUE(arguments);
  EXPECT_TRUE(std::holds_alternative<StatusOptions>(arguments->command));
}

TEST(HostArgs, OptionsOfTheOtherSideArePassedOn) {
  EXPECT_TRUE(parsed({"status", "--json", "--host", "a"}).json);
  EXPECT_TRUE(parsed({"status", "--summary", "--host", "a"}).form.summary);
  const HostsOptions chosen =
      parsed({"status", "--format", "gpu,host", "--no-titles", "--host", "a"});
  EXPECT_EQ(chosen.form.chosen->columns, (std::vector<StatusColumn>{kGpu, kHost}));
  EXPECT_FALSE(chosen.form.chosen->titles);
  EXPECT_THAT(chosen.options, ::testing::IsEmpty()) << "the machine there is asked for all of it";
  EXPECT_EQ(
      parsed({"status", "--memory-threshold", "1G", "--color", "never", "--host", "a"}).options,
      (std::vector<std::string>{"--memory-threshold=1G"}));
  const HostsOptions run = parsed({"run", "-m8G", "--note", "--a b", "--swap", "-v", "--gpus=2",
                                   "--host", "a", "--", "echo", "--host", "$x"});
  EXPECT_EQ(run.options, (std::vector<std::string>{"--verbose", "--gpus=2", "--memory=8G", "--swap",
                                                   "--note=--a b"}));
  ASSERT_TRUE(run.run);
  EXPECT_EQ(run.run->command, (std::vector<std::string>{"echo", "--host", "$x"}));
  EXPECT_EQ(parsed({"report", "--days", "7", "--by", "gpu", "--csv", "--host", "a"}).options,
            (std::vector<std::string>{"--days=7", "--by=gpu"}));
}

TEST(HostArgs, LocalDefaultsAreNotSentToTheHost) {
  const auto defaults = parse_own_defaults("[run]\nmemory = \"8G\"\n", "/c");
  ASSERT_TRUE(defaults);
  EXPECT_EQ(parsed({"run", "--host", "a", "--", "x"}, *defaults).options,
            std::vector<std::string>{});
  const auto host = parse_own_defaults("[run]\nhost = \"a\"\n", "/c");
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().message, "/c:2: run.host: type it each time");
}

TEST(HostArgs, HostNameThatSshWouldMisreadIsRefused) {
  for (const char* const good : {"gpu1", "user@gpu1", "gpu-1.example.org", "10.0.0.7", "[::1]",
                                 "u_1@fe80::1%eth0", "u@realm@gpu1"}) {
    EXPECT_TRUE(check_host(good)) << good;
  }
  for (const char* const bad :
       {"", "-oProxyCommand=x", "-l", "u@-x", "u@-x@gpu1", "u@", "@h", "a b", "a;b", "a\nb", "$(x)",
        "`x`", "a/b", "a'b", "a\\b", "ä", "a=b", "a*"}) {
    const auto checked = check_host(bad);
    ASSERT_FALSE(checked) << bad;
    EXPECT_NE(checked.error().message.find("is not a host: "), std::string::npos);
  }
  EXPECT_FALSE(check_host(std::string(256, 'a')));
  EXPECT_EQ(
      mistake({"status", "--host", "gpu1,-oProxyCommand=reboot"}),
      "'-oProxyCommand=reboot' is not a host: write a name, as gpu1 or user@gpu1, of letters, "
      "digits and ._@:%[]-");
  EXPECT_EQ(mistake({"status", "--host=-p22"}),
            "'-p22' is not a host: it begins with '-', which ssh would take for an option");
}

TEST(HostArgs, AFileHasAHostOnEachLineAndComments) {
  const auto hosts = parse_hosts("# all\n gpu1\t\r\n\nu@gpu2 # the large one\n#gpu3\ngpu4", "/f");
  ASSERT_TRUE(hosts) << hosts.error().message;
  EXPECT_EQ(*hosts, (std::vector<std::string>{"gpu1", "u@gpu2", "gpu4"}));
  EXPECT_EQ(
      parse_hosts("gpu1\n\ngpu2 gpu3\n", "/f").error().message,
      "/f:3: 'gpu2 gpu3' is not a host: write a name, as gpu1 or user@gpu1, of letters, digits "
      "and ._@:%[]-");
  EXPECT_TRUE(parse_hosts("", "/f")->empty());
  EXPECT_EQ(parse_hosts("\xEF\xBB\xBFgpu1", "/f")->front(), "gpu1");
}

TEST(HostArgs, TooManyHostsAreRefused) {
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < kMostHosts; ++i) hosts.push_back("h" + std::to_string(i));
  hosts.push_back("h0");
  EXPECT_EQ(distinct_hosts(hosts)->size(), kMostHosts);
  hosts.emplace_back("one-more");
  EXPECT_EQ(distinct_hosts(hosts).error().message, "257 hosts are too many: name at most 256");
}

TEST(HostArgs, InvalidArgumentsAreRefusedBeforeAnyHostIsAsked) {
  EXPECT_EQ(mistake({"top", "--host", "a,b"}).substr(0, 21), "top shows one machine");
  EXPECT_EQ(mistake({"top", "--hosts-file", "f"}).substr(0, 21), "top shows one machine");
  EXPECT_EQ(mistake({"status", "--watch", "--host", "a"}).substr(0, 25),
            "--watch shows one machine");
  EXPECT_EQ(mistake({"run", "--gpu-ids", "0", "--host", "a,b", "--", "x"}),
            "--lease, --near and --gpu-ids name something of one machine: give one --host");
  EXPECT_EQ(mistake({"run", "--lease", "L1", "--hosts-file", "f", "--", "x"}),
            "--lease, --near and --gpu-ids name something of one machine: give one --host");
  EXPECT_EQ(mistake({"run", "--gpu-ids", "0", "--host", "a", "--", "x"}), "none");
  EXPECT_EQ(mistake({"run", "--memory", "8X", "--host", "a", "--", "x"}).substr(0, 8), "--memory");
  EXPECT_NE(mistake({"job", "add", "web", "--host", "a", "--", "x"}), "none");
}

}  // namespace
}  // namespace gpurota::cli
