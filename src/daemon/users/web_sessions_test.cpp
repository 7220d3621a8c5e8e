#include "daemon/users/web_sessions.h"

#include "testing/fake_accounts.h"
#include "testing/fake_event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr uid_t kServer = 990, kOtherServer = 991, kAlice = 1000, kBob = 1001, kAdmin = 1002;
constexpr gid_t kAdmins = 50;

class WebSessionsTest : public ::testing::Test {
 protected:
  WebSessionsTest() {
    database->add_user("alice", kAlice, {kAlice});
    database->add_user("bob", kBob, {kBob});
    database->add_user("carol", kAdmin, {kAdmin, kAdmins});
    database->add_group("admins", kAdmins);
    config.admin_group = "admins";
    users.resolve(1min);
    server = sessions.add_server(kServer, "http://127.0.0.1:9836/");
  }

  // The secret of a link for this user.
  std::string link(uid_t uid) {
    const auto url = sessions.make_link(uid);
    EXPECT_TRUE(url) << url.error().message;
    if (!url) return "";
    EXPECT_THAT(*url, ::testing::StartsWith("http://127.0.0.1:9836/#sign-in="));
    return url->substr(url->find('=') + 1);
  }
  std::string token(uid_t uid) {
    const auto opened = sessions.sign_in(kServer, link(uid), "127.0.0.1");
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? opened->token : "";
  }
  const WebSessions::Session* use(const std::string& text) { return sessions.use(kServer, text); }

  testing::FakeEventLoop loop;
  std::shared_ptr<testing::FakeAccounts> database = std::make_shared<testing::FakeAccounts>();
  config::Config config;
  Users users{loop, database, config, 4711};
  int made = 0;
  WebSessions sessions{{loop, config, users,
                        [this] {
                          std::string secret = std::to_string(++made);
                          secret.insert(0, 32 - secret.size(), 'a');
                          return secret;
                        },
                        [this] {
                          return WallTime(std::chrono::duration_cast<WallTime::duration>(
                              loop.now().time_since_epoch()));
                        }}};
  std::uint32_t server = 0;
};

TEST_F(WebSessionsTest, ALinkSignsItsUserInOnce) {
  const std::string secret = link(kAlice);
  const auto opened = sessions.sign_in(kServer, secret, "127.0.0.1");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->session.uid, kAlice);
  ASSERT_TRUE(use(opened->token));
  EXPECT_EQ(use(opened->token)->uid, kAlice);
  const auto again = sessions.sign_in(kServer, secret, "127.0.0.1");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kDenied);
  EXPECT_THAT(again.error().message, HasSubstr("gpurota web"));
}

TEST_F(WebSessionsTest, WithoutAPageTheReasonIsGiven) {
  const auto refusal = [this] {
    auto refused = sessions.make_link(kAlice);
    EXPECT_FALSE(refused);
    return refused ? Error{} : refused.error();
  };
  sessions.remove_server(server);
  EXPECT_EQ(refusal().code, Code::kNotFound);
  EXPECT_THAT(refusal().message, HasSubstr("gpurota-web is not running"));
  sessions.refuse_server("bob");
  EXPECT_EQ(refusal().code, Code::kUnavailable);
  EXPECT_THAT(refusal().message, HasSubstr("runs as user 'bob', who may not sign people in"));
  const std::uint32_t pageless = sessions.add_server_without_page("it has no page");
  EXPECT_EQ(refusal().message, "it has no page");
  EXPECT_FALSE(sessions.check_server(kServer)) << "nobody signs in there";
  sessions.remove_server(pageless);
  loop.advance(WebSessions::kRetries);
  EXPECT_THAT(refusal().message, HasSubstr("gpurota-web is not running")) << "bob's has ended";
  sessions.add_server_without_page("it has no page");
  sessions.add_server(kServer, "http://127.0.0.1:9836/");
  EXPECT_NE(link(kAlice), "") << "one has a page";
  config.web.sign_in = false;
  EXPECT_EQ(refusal().code, Code::kDenied);
  EXPECT_THAT(refusal().message, HasSubstr("lets nobody sign in"));
}

TEST_F(WebSessionsTest, TheUserOfALinkCanBeAskedBeforeItIsUsed) {
  const std::string secret = link(kAlice);
  EXPECT_EQ(sessions.user_of_link(kServer, secret).value(), kAlice);
  EXPECT_EQ(sessions.user_of_link(kServer, secret).value(), kAlice) << "it is not used up";
  EXPECT_FALSE(sessions.user_of_link(kBob, secret)) << "only who serves the page may ask";
  EXPECT_FALSE(sessions.user_of_link(kServer, secret + "a"));
  ASSERT_TRUE(sessions.sign_in(kServer, secret, ""));
  EXPECT_FALSE(sessions.user_of_link(kServer, secret));
  const std::string late = link(kAlice);
  loop.advance(WebSessions::kLinkLife);
  EXPECT_FALSE(sessions.user_of_link(kServer, late));
}

TEST_F(WebSessionsTest, ALinkIsGoodForTwoMinutes) {
  const std::string secret = link(kAlice);
  loop.advance(WebSessions::kLinkLife);
  EXPECT_FALSE(sessions.sign_in(kServer, secret, ""));
}

TEST_F(WebSessionsTest, InvalidSecretSignsNobodyIn) {
  const std::string secret = link(kAlice);
  const std::string number = secret.substr(0, secret.find('.'));
  for (const std::string& each :
       {std::string(), std::string("."), number, number + ".", secret.substr(0, secret.size() - 1),
        secret + "a", "2" + secret.substr(1), "-1" + secret, std::string(200, '.')}) {
    EXPECT_FALSE(sessions.sign_in(kServer, each, "")) << each;
  }
  EXPECT_TRUE(sessions.sign_in(kServer, secret, "")) << "and the link is still good";
}

TEST_F(WebSessionsTest, WithoutRandomBytesThereIsNoLink) {
  WebSessions poor({loop, config, users, [] { return std::string(); }, [] { return WallTime(); }});
  poor.add_server(kServer, "http://localhost/");
  EXPECT_FALSE(poor.make_link(kAlice));
}

TEST_F(WebSessionsTest, OnlyTheUserOfTheServerCanUseALinkAndASession) {
  const std::string secret = link(kAlice);
  EXPECT_FALSE(sessions.sign_in(kBob, secret, ""));
  EXPECT_FALSE(sessions.sign_in(kAlice, secret, "")) << "not even whose it is";
  sessions.add_server(kOtherServer, "http://127.0.0.1:1/");
  EXPECT_FALSE(sessions.sign_in(kOtherServer, secret, "")) << "nor another server";
  const auto opened = sessions.sign_in(kServer, secret, "");
  ASSERT_TRUE(opened);
  EXPECT_FALSE(sessions.use(kBob, opened->token));
  EXPECT_FALSE(sessions.use(kAlice, opened->token));
  EXPECT_FALSE(sessions.use(kOtherServer, opened->token));
  EXPECT_TRUE(use(opened->token));
}

TEST_F(WebSessionsTest, TheEndOfTheServerEndsItsSessionsAndLinks) {
  const std::string first = token(kAlice), secret = link(kBob);
  sessions.remove_server(server);
  EXPECT_FALSE(use(first));
  EXPECT_FALSE(sessions.make_link(kAlice)) << "nobody serves the page";
  sessions.add_server(kServer, "http://127.0.0.1:9836/");
  EXPECT_FALSE(use(first));
  EXPECT_FALSE(sessions.sign_in(kServer, secret, ""));
  EXPECT_TRUE(use(token(kAlice)));
}

TEST_F(WebSessionsTest, ASessionThatIsNotUsedEndsAndSoDoesAnOldOne) {
  config.web.idle = 10min;
  config.web.longest = 30min;
  const std::string idle = token(kAlice), used = token(kBob);
  for (int minutes = 5; minutes < 30; minutes += 5) {
    loop.advance(5min);
    EXPECT_TRUE(use(used)) << minutes;
  }
  EXPECT_FALSE(use(idle));
  loop.advance(5min);
  EXPECT_FALSE(use(used)) << "however much it is used";
  EXPECT_TRUE(sessions.list().empty());
}

TEST_F(WebSessionsTest, RemovedUserIsSignedOut) {
  const std::string alices = token(kAlice), bobs = token(kBob);
  database->remove_user("alice");
  loop.advance(WebSessions::kSweep);
  ASSERT_TRUE(loop.run_until([&] { return sessions.list().size() == 1; }));
  EXPECT_FALSE(use(alices));
  EXPECT_TRUE(use(bobs));
}

TEST_F(WebSessionsTest, ADatabaseThatDoesNotAnswerSignsNobodyOutAndIsAskedOnce) {
  const std::string alices = token(kAlice);
  const int before = database->lookups();
  database->block();
  for (int i = 0; i < 10; ++i) loop.advance(WebSessions::kSweep);
  EXPECT_TRUE(use(alices));
  database->unblock();
  ASSERT_TRUE(loop.run_until([&] { return database->lookups() > before; }));
  EXPECT_LE(database->lookups(), before + 2) << "by the sweep, and as the groups are old";
}

TEST_F(WebSessionsTest, SignOutEndsTheSession) {
  const std::string first = token(kAlice), second = token(kAlice), bobs = token(kBob);
  ASSERT_EQ(sessions.list().size(), 3U);
  sessions.end(sessions.list().front().id);
  EXPECT_FALSE(use(first));
  const std::string secret = link(kAlice);
  sessions.end_all_of(kAlice);
  EXPECT_FALSE(use(second));
  EXPECT_FALSE(sessions.sign_in(kServer, secret, "")) << "a link is as good as a session";
  EXPECT_TRUE(use(bobs));
}

TEST_F(WebSessionsTest, LinksAndSessionsAreBoundedForEachUser) {
  const std::string bobs = token(kBob), bobs_link = link(kBob);
  std::vector<std::string> links, tokens;
  for (std::size_t i = 0; i <= WebSessions::kMostLinksPerUser; ++i) links.push_back(link(kAlice));
  EXPECT_FALSE(sessions.sign_in(kServer, links.front(), "")) << "the oldest made room";
  EXPECT_TRUE(sessions.sign_in(kServer, links.back(), ""));
  for (std::size_t i = 0; i < WebSessions::kMostSessionsPerUser; ++i) {
    loop.advance(1s);
    tokens.push_back(token(kAlice));
  }
  ASSERT_TRUE(use(tokens.front())) << "used just now";
  loop.advance(1s);
  tokens.push_back(token(kAlice));
  EXPECT_TRUE(use(tokens.front()));
  EXPECT_FALSE(use(tokens[1])) << "the least used of late made room";
  EXPECT_TRUE(use(bobs));
  EXPECT_TRUE(sessions.sign_in(kServer, bobs_link, ""));
}

TEST_F(WebSessionsTest, ProxySignsInOnlyIfAllowedAndNeverAdministrators) {
  EXPECT_FALSE(sessions.sign_in_by_proxy(kServer, kAlice, "")) << "not by default";
  config.web.accept_proxy_users = true;
  EXPECT_FALSE(sessions.sign_in_by_proxy(kBob, kAlice, "")) << "who serves nothing";
  for (const uid_t administrator : {uid_t{0}, uid_t{4711}}) {
    EXPECT_FALSE(sessions.sign_in_by_proxy(kServer, administrator, "")) << administrator;
  }
  const auto opened = sessions.sign_in_by_proxy(kServer, kAlice, "");
  ASSERT_TRUE(opened);
  EXPECT_TRUE(use(opened->token));
  // A user who becomes an administrator meanwhile loses the session that a proxy opened.
  database->add_user("alice", kAlice, {kAlice, kAdmins});
  users.look_up(kAlice, [](const auto&) {});
  ASSERT_TRUE(loop.run_until([&] { return users.is_administrator(kAlice); }));
  EXPECT_FALSE(use(opened->token));
}

TEST_F(WebSessionsTest, ForbiddingSessionsEndsTheCurrentOnes) {
  const std::string alices = token(kAlice), secret = link(kBob);
  config.web.sign_in = false;
  EXPECT_FALSE(use(alices));
  EXPECT_FALSE(sessions.sign_in(kServer, secret, ""));
  EXPECT_FALSE(sessions.make_link(kBob));
}

}  // namespace
}  // namespace gpurota::daemon
