// Tests of [notify]: what is accepted, and what is refused, with the suggestion in the message.
#include "config/changes.h"
#include "config/loaded.h"
#include "config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::config {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Notify> read(const std::string& text) {
  Loaded loaded = parse({{"gpurota.toml", "[notify]\n" + text}});
  if (loaded.mistake_count() > 0) return fail(Code::kInvalid, mistakes_text(loaded));
  return std::move(loaded.config.notify);
}

std::string refused(const std::string& text) {
  const auto config = read(text);
  return config ? "taken" : config.error().message;
}

TEST(NotifyFields, DefaultNoticesGoToTerminalsOnly) {
  const Notify none = *read("");
  EXPECT_TRUE(none.command.empty());
  EXPECT_FALSE(none.mail);
  EXPECT_TRUE(none.webhook.empty());
  EXPECT_THAT(none.before_end, ElementsAre(5min, 1min));
  EXPECT_THAT(none.before_booking, ElementsAre(24h, 1h, 5min, 1min));
}

TEST(NotifyFields, EverySettingIsRead) {
  const Notify all = *read(R"(
command = ["/usr/local/bin/notify-user", "--brief"]
mail = true
mail_domain = "example.org"
sendmail = "/usr/lib/sendmail"
webhook = "https://example.org/hook"
webhook_headers = ["Authorization: Bearer x"]
user = "nobody"
events = ["job_failed", "ends_soon", "job_failed"]
before_end = ["1m", "2h", "30s"]
before_booking = ["10m", "12h"]
time_limit = "2s"
most_per_hour = 5
)");
  EXPECT_THAT(all.command, ElementsAre("/usr/local/bin/notify-user", "--brief"));
  EXPECT_TRUE(all.mail);
  EXPECT_EQ(all.mail_domain, "example.org");
  EXPECT_EQ(all.sendmail, "/usr/lib/sendmail");
  EXPECT_EQ(all.webhook, "https://example.org/hook");
  EXPECT_THAT(all.webhook_headers, ElementsAre("Authorization: Bearer x"));
  EXPECT_EQ(all.user, "nobody");
  EXPECT_THAT(all.events, ElementsAre(NoticeKind::kJobFailed, NoticeKind::kEndsSoon));
  EXPECT_THAT(all.before_end, ElementsAre(2h, 1min, 30s)) << "the longest first";
  EXPECT_THAT(all.before_booking, ElementsAre(12h, 10min));
  EXPECT_EQ(all.time_limit, 2s);
  EXPECT_EQ(all.most_per_hour, 5);
}

TEST(NotifyFields, ProgramNeedsAnAbsolutePath) {
  EXPECT_THAT(refused("command = [\"notify-user\"]"),
              HasSubstr("notify.command: a list is not a command: write a program by its"));
  EXPECT_THAT(refused("command = \"/bin/true\""), HasSubstr("gpurota.toml:2"));
  EXPECT_THAT(refused("sendmail = \"sendmail\""), HasSubstr("absolute path"));
}

TEST(NotifyFields, NewLinesCannotInjectHeadersOrCurlOptions) {
  EXPECT_THAT(refused("webhook = \"https://a/\\noutput = /etc/passwd\""),
              HasSubstr("it is not a URL"));
  EXPECT_THAT(refused("webhook = \"file:///etc/passwd\""), HasSubstr("it is not a URL"));
  EXPECT_THAT(refused("webhook_headers = [\"A: b\\nC: d\"]"), HasSubstr("they are not headers"));
  EXPECT_THAT(refused("mail_domain = \"a b\""), HasSubstr("is not a domain"));
}

TEST(NotifyFields, UnknownEventListsTheKnownOnes) {
  const std::string why = refused("events = [\"endsoon\"]");
  EXPECT_THAT(why, HasSubstr("there is no event 'endsoon'"));
  for (const NoticeKind kind : kNoticeKinds) EXPECT_THAT(why, HasSubstr(to_string(kind)));
}

TEST(NotifyFields, TimesAndNumbersHaveBounds) {
  EXPECT_THAT(refused("before_end = [\"10ms\"]"),
              HasSubstr("'10ms' is too short: at least 1000 ms"));
  EXPECT_THAT(refused("before_end = \"5m\""), HasSubstr("write at most 8 times"));
  EXPECT_THAT(refused("time_limit = \"1h\""), HasSubstr("'1h' is too long"));
  EXPECT_THAT(refused("most_per_hour = 0"), HasSubstr("from 1 to 10000"));
  EXPECT_THAT(refused("before_end = []"), HasSubstr("taken"));
}

TEST(NotifyFields, WebhookIsHiddenButItsChangeIsShown) {
  const auto shown = [](const std::string& url, const std::string& header) {
    const Loaded loaded = parse(
        {{"f", "[notify]\nwebhook = \"" + url + "\"\nwebhook_headers = [\"" + header + "\"]\n"}});
    std::string text;
    for (const ShownSetting& each : shown_settings(loaded.config)) {
      if (each.key.starts_with("notify.webhook")) text += each.key + "=" + each.value + "\n";
    }
    return text;
  };
  const std::string one = shown("https://a/s3cret", "Authorization: t0ken");
  EXPECT_THAT(one, HasSubstr("notify.webhook=(secret, "));
  EXPECT_THAT(one, ::testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(one, ::testing::Not(HasSubstr("t0ken")));
  EXPECT_NE(one, shown("https://a/other", "Authorization: t0ken"));
  EXPECT_NE(one, shown("https://a/s3cret", "Authorization: other"));
}

}  // namespace
}  // namespace gpurota::config
