// Tests of the input of the programs that send notices to users.
#include "daemon/notices/channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ChannelsTest : public ::testing::Test {
 protected:
  ChannelsTest() {
    notice.what = "ends_soon";
    notice.lease = LeaseId{17};
    notice.user = "alice";
    notice.uid = 1000;
    notice.gpus = {"0", "1"};
    notice.at = WallTime(1h);
    notice.text = "L17 \"ends\"\xe2\x80\xae";
    site.command = {"/bin/notify", "x"};
    site.mail = true;
    site.webhook = "https://example.org/?key=s3cret\"";
    site.webhook_headers = {"Authorization: Bearer t0ken"};
  }
  ports::Program program(Channel channel) const { return *program_for(channel, site, notice); }

  config::Notify site;
  proto::Notice notice;
};

TEST_F(ChannelsTest, NoChannelsWithoutConfiguration) {
  EXPECT_THAT(channels_of(config::Notify{}), IsEmpty());
  EXPECT_THAT(channels_of(site), ElementsAre(Channel::kCommand, Channel::kMail, Channel::kWebhook));
}

TEST_F(ChannelsTest, TheProgramOfTheSiteGetsOneLineOfJson) {
  const auto made = program(Channel::kCommand);
  EXPECT_THAT(made.argv, ElementsAre("/bin/notify", "x"));
  EXPECT_EQ(
      made.input,
      "{\"what\":\"ends_soon\",\"lease\":\"L17\",\"user\":\"alice\",\"uid\":1000,\"gpus\":[\"0\","
      "\"1\"],\"at\":\"1970-01-01T01:00:00.000Z\",\"text\":\"L17 \\\"ends\\\"\\u202E\",\"reason\":"
      "null,\"by\":null}\n");
  EXPECT_EQ(made.user, "gpurota-notify");
  EXPECT_EQ(made.time_limit, 10s);
}

TEST_F(ChannelsTest, MailGoesToTheLocalUserOrDomainWithoutAutoReplies) {
  auto made = program(Channel::kMail);
  EXPECT_THAT(made.argv, ElementsAre("/usr/sbin/sendmail", "-i", "alice"));
  EXPECT_THAT(made.input, HasSubstr("To: alice\nSubject: gpurota: L17: ends soon\n"));
  EXPECT_THAT(made.input, HasSubstr("Auto-Submitted: auto-generated\n"));
  site.mail_domain = "example.org";
  made = program(Channel::kMail);
  EXPECT_EQ(made.argv.back(), "alice@example.org");
}

TEST_F(ChannelsTest, UserNameCannotBecomeAnOptionOrAnotherAddress) {
  for (const char* name : {"-bs", "a,b", "a b", "a@b", "a\nBcc: c", "1000", ""}) {
    notice.user = name;
    EXPECT_FALSE(program_for(Channel::kMail, site, notice)) << name;
  }
}

TEST_F(ChannelsTest, NothingSecretIsInTheArgumentsOfCurl) {
  const auto made = program(Channel::kWebhook);
  EXPECT_THAT(made.argv, ElementsAre("/usr/bin/curl", "-q", "--config", "-"));
  EXPECT_THAT(made.input, HasSubstr("url = \"https://example.org/?key=s3cret\\\"\"\n"));
  EXPECT_THAT(made.input, HasSubstr("header = \"Authorization: Bearer t0ken\"\n"));
  EXPECT_THAT(made.input, HasSubstr("\nfail\n"));
  EXPECT_THAT(made.input, HasSubstr("max-time = 10\n"));
  EXPECT_THAT(made.input, HasSubstr("data-raw = \"{\\\"what\\\":\\\"ends_soon\\\""));
}

}  // namespace
}  // namespace gpurota::daemon
