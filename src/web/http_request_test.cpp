#include "web/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(HttpRequest, IsReadWhenItsHeadIsThere) {
  const std::string text =
      "GET /metrics?a=b HTTP/1.1\r\nAccept: */*\r\nhOsT:  localhost:1 \r\n\r\n";
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_request(text.substr(0, size))) << size;
  }
  const auto request = parse_request(text + "and a body");
  ASSERT_TRUE(request && *request);
  EXPECT_EQ((*request)->method, "GET");
  EXPECT_EQ((*request)->path, "/metrics");
  EXPECT_EQ((*request)->host, "localhost:1");
}

TEST(HttpRequest, WithoutAHostHasNone) {
  const auto request = parse_request("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(request && *request);
  EXPECT_EQ((*request)->host, "");
}

TEST(HttpRequest, AmbiguousRequestIsRefused) {
  for (const std::string text :
       {"GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /\r\n\r\n", "\r\n\r\n",
        "GET / HTTP/2\r\n\r\n", "GET / / HTTP/1.1\r\n\r\n", " / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nnonsense\r\n\r\n",
        "GET /a\nb HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nA: b\nHost: c\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\rHost: c\r\n\r\n", "GET / HTTP/1.1\r\nA: \x1b[31m\r\n\r\n"}) {
    const auto request = parse_request(text);
    ASSERT_TRUE(request) << text;
    EXPECT_FALSE(*request) << text;
  }
}

TEST(HttpRequest, TooLongHeadIsRefused) {
  EXPECT_FALSE(parse_request(std::string(kLongestHead - 1, 'a')));
  const auto request = parse_request(std::string(kLongestHead, 'a'));
  ASSERT_TRUE(request);
  EXPECT_FALSE(*request);
}

TEST(HttpRequest, APostIsReadWithItsBodyAndNoMore) {
  const std::string head =
      "POST /api/call HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nContent-Length: 4\r\n\r\n";
  EXPECT_FALSE(parse_request(head + "bod"));
  const auto request = parse_request(head + "body, and more");
  ASSERT_TRUE(request && *request);
  EXPECT_TRUE((*request)->is_post());
  EXPECT_EQ((*request)->body, "body");
  EXPECT_EQ((*request)->header("origin"), "http://a");
  EXPECT_FALSE((*request)->header("cookie"));
}

TEST(HttpRequest, RepeatedHeaderIsIgnored) {
  const auto request = parse_request("GET / HTTP/1.1\r\nOrigin: a\r\norigin: b\r\n\r\n");
  ASSERT_TRUE(request && *request);
  EXPECT_FALSE((*request)->header("origin"));
}

TEST(HttpRequest, ABodyWhoseEndOthersMightSeeElsewhereIsRefused) {
  for (const std::string headers :
       {"", "Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: 1,1\r\n",
        "Content-Length: +1\r\n", "Content-Length: -1\r\n", "Content-Length: 0x1\r\n",
        "Content-Length: 18446744073709551617\r\n", "Content-Length: 16385\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"}) {
    const auto request = parse_request("POST / HTTP/1.1\r\n" + headers + "\r\na");
    ASSERT_TRUE(request) << headers;
    EXPECT_FALSE(*request) << headers;
  }
}

TEST(HttpRequest, HeadersForCachingAndGzipAreRead) {
  const auto read = [](const std::string& headers) {
    return **parse_request("GET / HTTP/1.1\r\n" + headers + "\r\n");
  };
  EXPECT_TRUE(read("Accept-Encoding: br, GZip;q=0.5\r\n").accepts_gzip);
  EXPECT_TRUE(read("accept-encoding:gzip\r\n").accepts_gzip);
  EXPECT_FALSE(read("Accept-Encoding: gzip;q=0.0, br\r\n").accepts_gzip);
  EXPECT_FALSE(read("Accept-Encoding: br, notgzip\r\n").accepts_gzip);
  EXPECT_FALSE(read("").accepts_gzip);
  EXPECT_EQ(read("If-None-Match: \"a\"\r\n").if_none_match, "\"a\"");
}

TEST(HttpResponse, ForbidsWhatThePageDoesNotNeed) {
  const std::string text = response_text({200, "page"}, false);
  EXPECT_THAT(text,
              HasSubstr("\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; "));
  EXPECT_THAT(text, HasSubstr("frame-ancestors 'none'\r\n"));
  EXPECT_EQ(text.find("unsafe"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("\r\nReferrer-Policy: no-referrer\r\n"));
  EXPECT_THAT(text, HasSubstr("\r\nCache-Control: no-store\r\n"));
}

TEST(HttpResponse, AFileMayBeKeptUntilItChanges) {
  HttpResponse response{200, "page"};
  response.etag = "\"a\"";
  response.is_gzip = true;
  const std::string text = response_text(response, false);
  EXPECT_THAT(text, HasSubstr("\r\nCache-Control: no-cache\r\n"));
  EXPECT_THAT(text, HasSubstr("\r\nVary: Accept-Encoding\r\nETag: \"a\"\r\n"));
  EXPECT_THAT(text, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
}

TEST(HttpResponse, HasItsLengthAndClosesTheConnection) {
  const std::string text = response_text({404, "nothing\n"}, false);
  EXPECT_THAT(text, HasSubstr("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(text, HasSubstr("\r\nConnection: close\r\nContent-Length: 8\r\n"));
  EXPECT_THAT(text, EndsWith("\r\n\r\nnothing\n"));
  EXPECT_THAT(response_text({404, "nothing\n"}, true), EndsWith("nosniff\r\n\r\n"));
}

}  // namespace
}  // namespace gpurota::web
