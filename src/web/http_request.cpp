#include "web/http_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace gpurota::web {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find(kLineEnd), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + kLineEnd.size()));
  return line;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_host(std::string_view name) {
  constexpr std::string_view kHost = "host";
  return std::equal(name.begin(), name.end(), kHost.begin(), kHost.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

Result<void> read_first_line(std::string_view line, HttpRequest& request) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || last == first || first == 0) {
    return fail(Code::kInvalid, "this is not an HTTP request");
  }
  std::string_view target = line.substr(first + 1, last - first - 1);
  if (!line.substr(last + 1).starts_with("HTTP/1.") || !target.starts_with("/") ||
      target.find(' ') != target.npos) {
    return fail(Code::kInvalid, "this is not an HTTP request for a path");
  }
  request.method = line.substr(0, first);
  request.path = target.substr(0, target.find('?'));
  return {};
}

const char* phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

}  // namespace

std::optional<Result<HttpRequest>> parse_request(std::string_view received) {
  const std::size_t end = received.find("\r\n\r\n");
  if (end == received.npos) {
    if (received.size() < kLongestHead) return std::nullopt;
    return fail(Code::kInvalid, "the head of this request is too long");
  }
  std::string_view head = received.substr(0, end);
  HttpRequest request;
  if (auto read = read_first_line(next_line(head), request); !read) {
    return tl::unexpected(std::move(read).error());
  }
  bool has_host = false;
  while (!head.empty()) {
    const std::string_view line = next_line(head);
    const std::size_t colon = line.find(':');
    // A name with a space, and a line that goes on with the last one, are read differently by others.
    if (colon == line.npos || line.substr(0, colon).find_first_of(" \t") != line.npos) {
      return fail(Code::kInvalid, "a header of this request is malformed");
    }
    if (!is_host(line.substr(0, colon))) continue;
    if (std::exchange(has_host, true)) return fail(Code::kInvalid, "two Host headers");
    request.host = trimmed(line.substr(colon + 1));
  }
  return request;
}

std::string response_text(const HttpResponse& response, bool head_only) {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{}\r\n",
      response.status, phrase(response.status), response.content_type, response.body.size(),
      response.status == 405 ? "Allow: GET, HEAD\r\n" : "");
  return head_only ? text : text + response.body;
}

}  // namespace gpurota::web
