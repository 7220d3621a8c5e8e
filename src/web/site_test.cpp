#include "web/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using ::testing::HasSubstr;

// quick() never asks a daemon.
class SiteTest : public ::testing::Test {
 protected:
  std::optional<HttpResponse> ask(const std::string& path, PageLevel level = PageLevel::kTotals) {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.host = "localhost";
    request.accepts_gzip = accepts_gzip;
    request.if_none_match = if_none_match;
    return Site(client::Location(), {.hosts = {}, .extra = {}, .level = level}, assets)
        .quick(request);
  }

  std::vector<PageAsset> assets = {{"/", "text/html", "W/\"one\"", "compressed", "plain"}};
  bool accepts_gzip = true;
  std::string if_none_match;
};

TEST_F(SiteTest, ServesThePageCompressedWithItsTag) {
  const auto response = ask("/");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "compressed");
  EXPECT_TRUE(response->is_gzip);
  EXPECT_EQ(response->etag, "W/\"one\"");
}

TEST_F(SiteTest, DataThatTheReaderHasIsNotSentAgain) {
  if_none_match = "W/\"other\", W/\"one\"";
  const auto response = ask("/");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 304);
  EXPECT_EQ(response->body, "");
}

TEST_F(SiteTest, AClientWithoutGzipGetsThePagePlain) {
  accepts_gzip = false;
  const auto response = ask("/");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "plain");
  EXPECT_FALSE(response->is_gzip);
}

TEST_F(SiteTest, WithoutAPageSaysWhy) {
  assets.clear();
  EXPECT_EQ(ask("/")->status, 404);
  EXPECT_THAT(ask("/")->body, HasSubstr("built without the page"));
  EXPECT_FALSE(ask("/api/now"));
}

TEST_F(SiteTest, ThePageMayBeSwitchedOff) {
  for (const char* path : {"/", "/api/now", "/api/live", "/api/events", "/api/history/15m",
                           "/api/turns", "/api/hours/7d"}) {
    const auto response = ask(path, PageLevel::kNone);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 404) << path;
  }
  EXPECT_THAT(ask("/", PageLevel::kNone)->body, HasSubstr("--page none"));
  EXPECT_FALSE(ask("/metrics", PageLevel::kNone));
}

TEST_F(SiteTest, UnknownPathsAreNotServed) {
  for (const char* path : {"/index.html", "//", "/../", "/api", "/api/", "/api/history/1y",
                           "/api/history/../now", "/page.js/", "/%2e%2e/etc/passwd"}) {
    const auto response = ask(path);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 404) << path;
  }
}

TEST_F(SiteTest, TheLiveStateIsAStream) {
  const auto response = ask("/api/live");
  ASSERT_TRUE(response);
  EXPECT_TRUE(response->is_stream);
  EXPECT_EQ(response->content_type, "text/event-stream");
}

}  // namespace
}  // namespace gpurota::web
