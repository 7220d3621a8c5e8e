#include "web/proxy.h"

#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using ::testing::HasSubstr;

class ProxyTest : public ::testing::Test {
 protected:
  static HttpRequest request(const std::string& peer,
                             std::vector<std::pair<std::string, std::string>> headers) {
    HttpRequest request;
    request.peer = peer;
    request.headers = std::move(headers);
    return request;
  }
  std::string secret_file(const std::string& text) {
    testing::write_file(folder.file("secret"), text);
    return folder.file("secret");
  }

  testing::TempDir folder;
  const std::string secret = "0123456789abcdef0123456789abcdef";
};

TEST_F(ProxyTest, WithoutAProxyNoUserIsNamed) {
  const Proxy none;
  EXPECT_FALSE(none.is_used());
  EXPECT_EQ(*none.user_of(request("192.0.2.7", {{"x-remote-user", "alice"}})), "");
}

TEST_F(ProxyTest, TheHeaderOfThePeerIsTheUser) {
  const auto proxy = Proxy::make(
      {.peers = {"192.0.2.7", "2001:DB8:0::7"}, .user_header = "X-Remote-User", .secret_file = {}});
  ASSERT_TRUE(proxy) << proxy.error().message;
  EXPECT_EQ(*proxy->user_of(request("192.0.2.7", {{"x-remote-user", "alice"}})), "alice");
  EXPECT_EQ(*proxy->user_of(request("2001:db8::7", {{"x-remote-user", "alice"}})), "alice");
  EXPECT_EQ(*proxy->user_of(request("192.0.2.7", {})), "") << "somebody who is not signed in";
}

TEST_F(ProxyTest, HeaderOfAnUntrustedPeerIsAnError) {
  const auto proxy =
      Proxy::make({.peers = {"192.0.2.7"}, .user_header = "X-Remote-User", .secret_file = {}});
  ASSERT_TRUE(proxy);
  for (const char* peer : {"192.0.2.70", "127.0.0.1", "::1", ""}) {
    EXPECT_FALSE(proxy->user_of(request(peer, {{"x-remote-user", "alice"}}))) << peer;
  }
  EXPECT_FALSE(
      proxy->user_of(request("192.0.2.7", {{"x-remote-user", "alice"}, {"x-remote-user", "bob"}})));
  EXPECT_FALSE(proxy->user_of(request("192.0.2.7", {{"x-remote-user", ""}})));
}

TEST_F(ProxyTest, ProxyOnThisMachineMustShowASecret) {
  const Proxy::Options open{
      .peers = {"127.0.0.1"}, .user_header = "X-Remote-User", .secret_file = {}};
  const auto refused = Proxy::make(open);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--proxy-secret"));
  Proxy::Options safe = open;
  safe.secret_file = secret_file(secret + "\n");
  const auto proxy = Proxy::make(safe);
  ASSERT_TRUE(proxy) << proxy.error().message;
  const std::string name(Proxy::kSecretHeader);
  EXPECT_EQ(*proxy->user_of(request("127.0.0.1", {{"x-remote-user", "alice"}, {name, secret}})),
            "alice");
  EXPECT_FALSE(proxy->user_of(request("127.0.0.1", {{"x-remote-user", "alice"}})));
  EXPECT_FALSE(
      proxy->user_of(request("127.0.0.1", {{"x-remote-user", "alice"}, {name, secret + "0"}})));
}

TEST_F(ProxyTest, MalformedRequestIsRefused) {
  const auto why = [](const Proxy::Options& options) {
    const auto proxy = Proxy::make(options);
    return proxy ? "" : proxy.error().message;
  };
  EXPECT_THAT(why({.peers = {"192.0.2.7"}, .user_header = {}, .secret_file = {}}),
              HasSubstr("--proxy-user-header"));
  EXPECT_THAT(why({.peers = {}, .user_header = "X-User", .secret_file = {}}), HasSubstr("--proxy"));
  EXPECT_THAT(why({.peers = {"gate"}, .user_header = "X-User", .secret_file = {}}),
              HasSubstr("not an address"));
  EXPECT_THAT(why({.peers = {"192.0.2.7"}, .user_header = "X User", .secret_file = {}}),
              HasSubstr("not the name of a header"));
  EXPECT_THAT(
      why({.peers = {"192.0.2.7"}, .user_header = "X-User", .secret_file = secret_file("short")}),
      HasSubstr("at least 16"));
  EXPECT_THAT(why({.peers = {"192.0.2.7"}, .user_header = "X-User", .secret_file = "/nowhere"}),
              HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace gpurota::web
