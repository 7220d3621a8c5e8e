#include "web/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

namespace gpurota::web {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string mistake(const char* text) {
  const auto peer = parse_peer(text);
  return peer ? "" : peer.error().message;
}

TEST(Peer, IsParsedAsANameAndAUrl) {
  EXPECT_EQ(*parse_peer("gpu2=https://10.0.0.2:9836/"), (Peer{"gpu2", "https://10.0.0.2:9836/"}));
  EXPECT_EQ(*parse_peer("https://gpu2.example.org"),
            (Peer{"gpu2.example.org", "https://gpu2.example.org/"}));
  EXPECT_EQ(parse_peer("http://[::1]:9836")->name, "::1");
  EXPECT_EQ(parse_peer("https://gpu2/gpurota")->url, "https://gpu2/gpurota/");
}

TEST(Peer, MissingPeerHasAReason) {
  for (const char* text :
       {"", "gpu2", "gpu2:9836", "ftp://gpu2/", "file:///etc/passwd", "https://",
        "gpu2=", "=https://gpu2/", "https://user@gpu2/", "https://gpu2/?a=b", "https://gpu2/#x",
        "https://gpu2/ x", "a b=https://gpu2/", "<b>=https://gpu2/", "javascript:alert(1)//://x"}) {
    EXPECT_THAT(mistake(text), HasSubstr("gpu2=https://gpu2.example.org:9836/")) << text;
  }
}

TEST(Peer, IsOpenIfOthersCanEavesdrop) {
  EXPECT_TRUE(is_open(*parse_peer("http://192.0.2.7:9836")));
  EXPECT_TRUE(is_open(*parse_peer("http://localhost.example.org")));
  for (const char* closed :
       {"https://192.0.2.7", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"}) {
    EXPECT_FALSE(is_open(*parse_peer(closed))) << closed;
  }
}

// Answers with what the test has set; a URL without an answer is never answered.
class FakeFetcher : public Fetcher {
 public:
  FakeFetcher(std::map<std::string, Result<std::string>> answers, std::atomic<int>& rounds)
      : answers_(std::move(answers)), rounds_(rounds) {}
  void fetch(const std::vector<std::string>& urls, const OnAnswer& on_answer,
             const std::function<bool()>& is_over) override {
    bool all = true;
    for (std::size_t i = 0; i < urls.size(); ++i) {
      const auto found = answers_.find(urls[i]);
      all = all && found != answers_.end();
      if (found != answers_.end()) on_answer(i, found->second);
    }
    ++rounds_;
    rounds_.notify_all();
    while (!all && !is_over()) std::this_thread::yield();
  }

 private:
  std::map<std::string, Result<std::string>> answers_;
  std::atomic<int>& rounds_;
};

Totals totals_with(std::int64_t free) {
  Totals totals;
  totals.daemon_up = true;
  totals.gpus = totals.free = free;
  totals.users = {"alice"};
  return totals;
}

class FleetTest : public ::testing::Test {
 protected:
  static HttpRequest with(const std::string& authorization) {
    HttpRequest request;
    request.headers.emplace_back("authorization", authorization);
    return request;
  }
  std::atomic<int> rounds{0};
};

TEST_F(FleetTest, EachPeerIsARowWhateverTheOthersDo) {
  Fleet fleet({{"fine", "http://fine/"},
               {"bad", "http://bad/"},
               {"mute", "http://mute/"},
               {"liar", "http://liar/"}},
              "",
              std::make_unique<FakeFetcher>(
                  std::map<std::string, Result<std::string>>{
                      {"http://fine/api/totals", totals_json(totals_with(3))},
                      {"http://bad/api/totals", fail(Code::kTimeout, "no answer within 3 s")},
                      {"http://liar/api/totals", "{\"free\": 1000"}},
                  rounds));
  ASSERT_TRUE(fleet.begin());
  // No peer is asked before somebody views the page.
  EXPECT_THAT(fleet.machines_json(totals_with(1), "here", PageLevel::kTotals),
              HasSubstr(R"("name":"fine","url":"http://fine/","here":false,"state":"asked"})"));
  rounds.wait(0);
  const std::string told = fleet.machines_json(totals_with(1), "here", PageLevel::kTotals);
  EXPECT_THAT(told, HasSubstr(R"("name":"here","url":"","here":true,"state":"answers")"));
  EXPECT_THAT(told, HasSubstr(R"("gpus":3,"free":3)"));
  EXPECT_THAT(told, HasSubstr(R"("state":"fails","error":"no answer within 3 s")"));
  EXPECT_THAT(told, HasSubstr(R"("state":"fails","error":"its answer is malformed)"));
  EXPECT_THAT(told,
              HasSubstr(R"("name":"mute","url":"http://mute/","here":false,"state":"asked")"));
  // A peer's users are shown only where our own are.
  EXPECT_EQ(told.find("alice"), told.rfind("alice"));
  EXPECT_THAT(fleet.machines_json(totals_with(1), "here", PageLevel::kNames),
              HasSubstr(R"("users":["alice"]},{"name":"bad")"));
}

TEST_F(FleetTest, TotalsNeedTheToken) {
  Fleet fleet({}, "0123456789abcdef", nullptr);
  for (const char* wrong : {"", "Bearer ", "Bearer 0123456789abcdeF", "Bearer 0123456789abcdef0",
                            "Basic 0123456789abcdef", "0123456789abcdef"}) {
    EXPECT_EQ(fleet.refuse(with(wrong))->status, 401) << wrong;
  }
  HttpRequest twice = with("Bearer 0123456789abcdef");
  twice.headers.push_back(twice.headers.front());
  EXPECT_EQ(fleet.refuse(twice)->status, 401);
  EXPECT_FALSE(fleet.refuse(with("Bearer 0123456789abcdef")));
  // Without a token nobody is authorized.
  EXPECT_EQ(Fleet({}, "", nullptr).refuse(with("Bearer "))->status, 404);
}

TEST_F(FleetTest, PeerThatAsksTooOftenMustWait) {
  Fleet fleet({}, "0123456789abcdef", nullptr);
  int answered = 0;
  while (!fleet.refuse(with("Bearer 0123456789abcdef")) && answered < 100000) ++answered;
  EXPECT_GE(answered, Fleet::kTotalsAtOnce);
  EXPECT_LT(answered, 100000);
  EXPECT_EQ(fleet.refuse(with("Bearer wrong"))->status, 401);
}

TEST_F(FleetTest, PeersNeedATokenAndAreNotTooMany) {
  const auto without = Fleet::make({.peers = {{"a", "http://a/"}}});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("--fleet-token"));
  const auto many =
      Fleet::make({.peers = std::vector<Peer>(Fleet::kMostPeers + 1), .token_file = "/dev/null"});
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().message, HasSubstr("at most 64"));
  const auto empty = Fleet::make({.token_file = "/dev/null"});
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("openssl rand"));
}

}  // namespace
}  // namespace gpurota::web
