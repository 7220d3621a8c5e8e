// A request and its answer, as far as gpurota-web needs HTTP: the head, and the body of a POST with
// a length; the connection is closed after the answer. Every answer forbids a browser what the page
// does not need: foreign scripts and styles, frames, and sending a referrer. Pure.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpurota::web {

// A longer head is not a request for our page.
constexpr std::size_t kLongestHead = 8192;
// A longer body is not a POST for our page.
constexpr std::size_t kLongestBody = 16384;

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
  std::string host;  // the Host header
  std::string if_none_match;
  bool accepts_gzip = false;
  std::string body{};  // of a POST
  std::string peer{};  // the address of the client
  // All headers, with names in lower case.
  std::vector<std::pair<std::string, std::string>> headers{};

  // The value of a header; nullopt if it is missing or there twice. `name` is in lower case.
  std::optional<std::string_view> header(std::string_view name) const;
  bool is_post() const { return method == "POST"; }
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::string etag{};        // with its quotes; empty: the answer must not be cached
  bool is_gzip = false;      // the body is compressed
  bool is_stream = false;    // the body is the beginning of an event stream (viewers.h)
  std::string set_cookie{};  // empty: none
};

// nullopt: the request is incomplete. Error: it can never become a request; the message is for the
// client.
std::optional<Result<HttpRequest>> parse_request(std::string_view received);

// With `head_only` the body is left out, but its length is sent.
std::string response_text(const HttpResponse& response, bool head_only);

}  // namespace gpurota::web
