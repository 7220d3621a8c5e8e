// A request and its answer, as far as gpurota-web needs HTTP: the head of a GET, nothing of a body, and
// the connection is closed after the answer. Pure.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota::web {

// More than that is no request for a page of ours.
constexpr std::size_t kLongestHead = 8192;

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
  std::string host;  // the Host header
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

// Nothing: the head has not come whole yet. An error: it never will be a request; its message is for
// the client.
std::optional<Result<HttpRequest>> parse_request(std::string_view received);

// With `head_only` the body is only told of.
std::string response_text(const HttpResponse& response, bool head_only);

}  // namespace gpurota::web
