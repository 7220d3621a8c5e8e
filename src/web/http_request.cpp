#include "web/http_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
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

// `word` must be in lower case.
bool is_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

// Whether a list such as "br, gzip;q=0.5" accepts "gzip"; "q=0" means that it does not.
bool has_gzip(std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = trimmed(list.substr(0, comma));
    list.remove_prefix(std::min(list.size(), comma + 1));
    const std::size_t semicolon = std::min(item.find(';'), item.size());
    if (!is_word(trimmed(item.substr(0, semicolon)), "gzip")) continue;
    const std::size_t quality = item.find("q=");
    return quality == item.npos || item.find_first_of("123456789", quality) != item.npos;
  }
  return false;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// The length of the body. Only one plain number is accepted, because programs disagree about how to
// read anything else.
Result<std::size_t> body_length(const HttpRequest& request) {
  std::size_t length = 0;
  int told = 0;
  for (const auto& [name, value] : request.headers) {
    if (name == "transfer-encoding") return fail(Code::kInvalid, "a body in pieces is not taken");
    if (name != "content-length") continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (++told > 1 || error != std::errc() || end != value.data() + value.size()) {
      return fail(Code::kInvalid, "the Content-Length of this request is malformed");
    }
  }
  if (told == 0) return fail(Code::kInvalid, "a POST says its Content-Length");
  if (length > kLongestBody) return fail(Code::kInvalid, "the body of this request is too long");
  return length;
}

void read_header(std::string_view name, std::string_view value, HttpRequest& request) {
  request.headers.emplace_back(lower_case(name), value);
  if (is_word(name, "host")) request.host = value;
  if (is_word(name, "if-none-match")) request.if_none_match = value;
  if (is_word(name, "accept-encoding")) request.accepts_gzip = has_gzip(value);
}

// Sent with every answer. 'self' is this program: the page makes no request to another host, and
// has no style or script in its HTML.
constexpr std::string_view kForEveryAnswer =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n";

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

// Lone line ends and similar control characters: some programs read them as the end of a header.
bool has_control(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto byte = static_cast<unsigned char>(head[i]);
    if (byte == '\r' && i + 1 < head.size() && head[i + 1] == '\n') {
      ++i;
    } else if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      return true;
    }
  }
  return false;
}

const char* phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 415:
      return "Unsupported Media Type";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [each, value] : headers) {
    if (each != name) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

std::optional<Result<HttpRequest>> parse_request(std::string_view received) {
  const std::size_t end = received.find("\r\n\r\n");
  if (end == received.npos) {
    if (received.size() < kLongestHead) return std::nullopt;
    return fail(Code::kInvalid, "the head of this request is too long");
  }
  if (end > kLongestHead) return fail(Code::kInvalid, "the head of this request is too long");
  std::string_view head = received.substr(0, end);
  if (has_control(head)) {
    return fail(Code::kInvalid, "the head of this request has control characters");
  }
  HttpRequest request;
  if (auto read = read_first_line(next_line(head), request); !read) {
    return tl::unexpected(std::move(read).error());
  }
  bool has_host = false;
  while (!head.empty()) {
    const std::string_view line = next_line(head);
    const std::size_t colon = line.find(':');
    // Programs disagree about how to read a name with a space, and a line that continues the
    // previous one.
    if (colon == line.npos || line.substr(0, colon).find_first_of(" \t") != line.npos) {
      return fail(Code::kInvalid, "a header of this request is malformed");
    }
    const std::string_view name = line.substr(0, colon);
    if (is_word(name, "host") && std::exchange(has_host, true)) {
      return fail(Code::kInvalid, "two Host headers");
    }
    read_header(name, trimmed(line.substr(colon + 1)), request);
  }
  if (!request.is_post()) return request;
  const auto length = body_length(request);
  if (!length) return tl::unexpected(length.error());
  const std::string_view body = received.substr(end + 4);
  if (body.size() < *length) return std::nullopt;
  request.body = body.substr(0, *length);
  return request;
}

std::string response_text(const HttpResponse& response, bool head_only) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: close\r\n",
                                 response.status, phrase(response.status), response.content_type);
  // An event stream ends with its connection, so it has no length.
  if (!response.is_stream) text += fmt::format("Content-Length: {}\r\n", response.body.size());
  if (response.is_gzip) text += "Content-Encoding: gzip\r\n";
  if (response.etag.empty()) {
    text += "Cache-Control: no-store\r\n";
  } else {
    text += fmt::format("Cache-Control: no-cache\r\nVary: Accept-Encoding\r\nETag: {}\r\n",
                        response.etag);
  }
  if (!response.set_cookie.empty()) text += fmt::format("Set-Cookie: {}\r\n", response.set_cookie);
  if (response.status == 405) text += "Allow: GET, HEAD\r\n";
  text += kForEveryAnswer;
  text += "\r\n";
  return head_only ? text : text + response.body;
}

}  // namespace gpurota::web
