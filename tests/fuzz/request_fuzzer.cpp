// Any bytes from an HTTP client are parsed as a request, refused with a reason, or found
// incomplete; the answer has exactly the headers that we gave it.
#include "web/http_request.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace gpurota;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_request(const web::HttpRequest& request) {
  require(request.path.starts_with('/'));
  require(request.path.find_first_of(" ?\r\n") == request.path.npos);
  require(!request.method.empty() && request.method.find(' ') == request.method.npos);
  require(request.body.size() <= web::kLongestBody);
  require(request.is_post() || request.body.empty());
  for (const auto& [name, value] : request.headers) {
    require(name.find_first_of(" \t\r\n:ABCDEFGHIJKLMNOPQRSTUVWXYZ") == name.npos);
    require(value.find("\r\n") == value.npos);
    const auto same =
        std::count_if(request.headers.begin(), request.headers.end(),
                      [&name = name](const auto& each) { return each.first == name; });
    require(request.header(name).has_value() == (same == 1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto request = web::parse_request(input);
  if (!request) {
    require(size < web::kLongestHead + web::kLongestBody + 4);
    return 0;
  }
  if (!*request) {
    const std::string& why = request->error().message;
    require(!why.empty() && why.find('\n') == why.npos);
    return 0;
  }
  check_request(**request);
  // A request in pieces is parsed like one that arrives at once.
  for (const std::size_t cut : {size / 3, size - std::min<std::size_t>(size, 1)}) {
    const auto part = web::parse_request(input.substr(0, cut));
    require(!part || !*part || (*part)->path == (*request)->path);
  }
  return 0;
}
