#include "kube/api/api_client.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/text.h"
#include "kube/api/json_internal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include <curl/curl.h>
#include <fcntl.h>

namespace gpurota::kube {
namespace {

constexpr std::size_t kMostBody = std::size_t{32} << 20;
constexpr std::size_t kMostToken = 64 << 10;
constexpr std::size_t kMostKept = 8;
constexpr long kConnectPatienceMs = 3000;
constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

struct EndHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, EndHandle>;
struct EndList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, EndList>;

std::size_t take_part(char* data, std::size_t size, std::size_t count, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + size * count > kMostBody) return 0;  // ends the call
  body.append(data, size * count);
  return size * count;
}

void add_header(Headers& headers, const std::string& line) {
  // Without memory for the header, the call goes without it, and the server's error names it.
  if (curl_slist* const longer = curl_slist_append(headers.get(), line.c_str())) {
    (void)headers.release();
    headers.reset(longer);
  }
}

Result<std::string> read_token(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("cannot read the token for the API server, " + path, errno);
  auto text = read_all(file.get(), kMostToken);
  if (!text) return fail_errno("cannot read the token for the API server, " + path, errno);
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (!text->empty() && text->find_first_of("\r\n") == std::string::npos) return std::move(*text);
  return fail(Code::kInvalid, fmt::format("{} is not a token for the API server", path));
}

bool is_of_this_machine(std::string_view server) {
  server.remove_prefix(std::min(server.find("//") + 2, server.size()));
  for (const std::string_view host : {"127.0.0.1", "localhost", "[::1]"}) {
    if (!server.starts_with(host)) continue;
    const std::string_view rest = server.substr(host.size());
    if (rest.empty() || rest.front() == ':' || rest.front() == '/') return true;
  }
  return false;
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool is_object_name(std::string_view name) {
  constexpr std::size_t kLongest = 253;
  constexpr std::string_view kSigns = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return !name.empty() && name.size() <= kLongest && name.front() != '.' &&
         name.find_first_not_of(kSigns) == std::string_view::npos;
}

Result<ApiAccess> access_in_cluster() {
  std::string host = variable("KUBERNETES_SERVICE_HOST");
  const std::string port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return fail(
        Code::kNotFound,
        "this is not a pod of a cluster (KUBERNETES_SERVICE_HOST is not set): say where the API "
        "server is, with --api-server, --token-file and --ca-file");
  }
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return ApiAccess{fmt::format("https://{}:{}", host, port), std::string(kServiceAccount) + "token",
                   std::string(kServiceAccount) + "ca.crt"};
}

Result<void> check_access(const ApiAccess& access) {
  if (access.server.starts_with("https://")) return {};
  if (access.server.starts_with("http://") && is_of_this_machine(access.server)) return {};
  return fail(Code::kInvalid, fmt::format("'{}' is not the address of an API server: write "
                                          "https://HOST:PORT (http:// is for this machine only)",
                                          display_text(access.server, 100)));
}

// One call at a time uses a connection.
struct ApiClient::Handles {
  Handle take() {
    const std::lock_guard lock(mutex);
    if (kept.empty()) return Handle(curl_easy_init());
    Handle handle = std::move(kept.back());
    kept.pop_back();
    return handle;
  }
  void give_back(Handle handle) {
    curl_easy_reset(handle.get());  // keeps the connection
    const std::lock_guard lock(mutex);
    if (kept.size() < kMostKept) kept.push_back(std::move(handle));
  }
  std::mutex mutex;
  std::vector<Handle> kept;  // guarded by mutex
};

ApiClient::ApiClient(ApiAccess access, std::string program)
    : access_(std::move(access)),
      program_(std::move(program)),
      handles_(std::make_unique<Handles>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

ApiClient::~ApiClient() = default;

// The parts of a call that differ. `to` is passed to curl's callbacks.
struct ApiClient::Request {
  const char* method = "GET";
  const std::string& path;
  const std::string& body;
  curl_write_callback write = nullptr;
  curl_xferinfo_callback progress = nullptr;  // null: none
  void* to = nullptr;
};

// The HTTP status. Also kUnavailable if a callback has ended the call.
Result<int> ApiClient::perform(const Request& request, Milliseconds patience) {
  if (patience.count() <= 0) return fail(Code::kTimeout, "no time is left to ask the API server");
  Headers headers;
  add_header(headers, "Accept: application/json");
  if (!request.body.empty()) add_header(headers, "Content-Type: application/json");
  if (!access_.token_file.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(const std::string token, read_token(access_.token_file));
    add_header(headers, "Authorization: Bearer " + token);
  }
  Handle handle = handles_->take();
  if (!handle) return fail(Code::kUnavailable, "there is no memory to ask the API server");
  CURL* const curl = handle.get();
  const std::string url = access_.server + request.path;
  std::string why(CURL_ERROR_SIZE, '\0');
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  if (!request.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  if (!access_.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, access_.ca_file.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, request.write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, request.to);
  if (request.progress) {
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, request.progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, request.to);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE,
                     1L);  // so that a broken connection is noticed
  }
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why.data());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectPatienceMs);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(patience.count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // no proxy: only the server may see the token
  curl_easy_setopt(curl, CURLOPT_USERAGENT, program_.c_str());
  const CURLcode done = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  handles_->give_back(std::move(handle));
  if (done == CURLE_OK) return static_cast<int>(status);
  const std::string reason = why.front() ? why.c_str() : curl_easy_strerror(done);
  return fail(done == CURLE_OPERATION_TIMEDOUT ? Code::kTimeout : Code::kUnavailable,
              fmt::format("the API server at {} does not answer: {}", access_.server,
                          display_text(reason, 200)));
}

Result<ApiAnswer> ApiClient::call(const char* method, const std::string& path,
                                  const std::string& body, Milliseconds patience) {
  ApiAnswer answer;
  GPUROTA_ASSIGN_OR_RETURN(
      answer.status,
      perform(
          {.method = method, .path = path, .body = body, .write = take_part, .to = &answer.body},
          patience));
  return answer;
}

namespace {

// Splits a body into lines as it arrives.
struct Lines {
  const std::function<bool(std::string_view line)>& take;
  const std::atomic<bool>& stop;
  std::string part{};  // the incomplete last line
  bool any = false, ended = false;

  bool feed(std::string_view data) {
    part += data;
    for (std::size_t end = part.find('\n'); end != std::string::npos; end = part.find('\n')) {
      any = true;
      if (!take(std::string_view(part).substr(0, end))) return false;
      part.erase(0, end + 1);
    }
    return part.size() <= kMostBody;
  }
};

std::size_t take_lines(char* data, std::size_t size, std::size_t count, void* to) {
  auto& lines = *static_cast<Lines*>(to);
  lines.ended = !lines.feed({data, size * count});
  return lines.ended ? 0 : size * count;
}

int check_for_stop(void* to, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& lines = *static_cast<Lines*>(to);
  lines.ended = lines.ended || lines.stop;
  return lines.ended ? 1 : 0;
}

}  // namespace

Result<ApiAnswer> ApiClient::follow(const std::string& path,
                                    const std::function<bool(std::string_view line)>& take,
                                    const std::atomic<bool>& stop, Milliseconds patience) {
  constexpr int kOk = 200;
  Lines lines{.take = take, .stop = stop};
  auto status = perform(
      {.path = path, .body = {}, .write = take_lines, .progress = check_for_stop, .to = &lines},
      patience);
  if (status) return ApiAnswer{*status, std::move(lines.part)};
  if (lines.ended || (lines.any && status.error().code == Code::kTimeout))
    return ApiAnswer{kOk, {}};
  return tl::unexpected(std::move(status).error());
}

Error error_of(const ApiAnswer& answer, const std::string& what) {
  const std::string said = text_at(parse_json(answer.body), "message");
  const Code code = answer.status == 404                           ? Code::kNotFound
                    : answer.status == 401 || answer.status == 403 ? Code::kDenied
                                                                   : Code::kUnavailable;
  return Error{code, answer.status,
               fmt::format("cannot {}: the API server says {}{}{}", what, answer.status,
                           said.empty() ? "" : ", ", display_text(said, 300))};
}

}  // namespace gpurota::kube
