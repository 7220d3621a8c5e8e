#include "web/signed_in.h"

#include "base/account_names.h"
#include "base/threads.h"
#include "proto/codec.h"
#include "web/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include <poll.h>

namespace gpurota::web {
namespace {

constexpr const char* kJsonType = "application/json";
constexpr std::string_view kSignInPath = "/api/sign-in";
constexpr std::string_view kCallPath = "/api/call";
constexpr std::string_view kKeyHeader = "gpurota-session";
constexpr std::size_t kKeyChars = 32;  // the end of a token: the page's half
constexpr std::chrono::seconds kRetry{2};
constexpr int kCheckLineMs = 500;

HttpResponse refusal(int status, std::string_view why) {
  return {status, JsonObject().add("error", std::string(why)).take().text + "\n", kJsonType};
}

HttpResponse signed_out() { return refusal(401, "you are signed out"); }

// Cookie names contain the port, because one browser may reach several machines as localhost.
std::string cookie_name(const HttpRequest& request) {
  const std::size_t colon = request.host.rfind(':');
  const std::string_view port =
      colon == std::string::npos ? "" : std::string_view(request.host).substr(colon + 1);
  const bool is_number = !port.empty() && port.find_first_not_of("0123456789") == port.npos;
  return is_number ? fmt::format("gpurota-{}", port) : "gpurota";
}

std::optional<std::string> cookie_of(const HttpRequest& request) {
  const auto header = request.header("cookie");
  if (!header) return std::nullopt;
  std::string_view rest = *header;
  const std::string begin = cookie_name(request) + "=";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    std::string_view each = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    each.remove_prefix(std::min(each.find_first_not_of(' '), each.size()));
    if (each.starts_with(begin)) return std::string(each.substr(begin.size()));
  }
  return std::nullopt;
}

// Whether the page of this host has sent the request: browsers say so in a header that no script
// can set.
bool is_from_page(const HttpRequest& request) {
  const auto origin = request.header("origin");
  if (!origin) return false;
  const auto site = request.header("sec-fetch-site");
  if (site && *site != "same-origin") return false;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin->starts_with(scheme)) return origin->substr(scheme.size()) == request.host;
  }
  return false;
}

// The two halves of the token; nullopt if one is missing.
std::optional<std::string> token_of(const HttpRequest& request) {
  const auto cookie = cookie_of(request);
  const auto key = request.header(kKeyHeader);
  if (!cookie || !key || key->size() != kKeyChars) return std::nullopt;
  return *cookie + std::string(*key);
}

bool is_json(const HttpRequest& request) {
  const auto type = request.header("content-type");
  return type && type->substr(0, type->find(';')) == kJsonType;
}

}  // namespace

SignedIn::~SignedIn() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> SignedIn::begin(std::string url) {
  url_ = std::move(url);
  GPUROTA_ASSIGN_OR_RETURN(thread_, start_thread([this] { serve(); }));
  return {};
}

const char* SignedIn::sign_in_way() const {
  const std::lock_guard lock(mutex_);
  return !open_ ? "none" : proxy_.is_used() ? "proxy" : "link";
}

// Sessions end with the daemon connection on which they began.
void SignedIn::set_open(bool open) {
  const std::lock_guard lock(mutex_);
  open_ = open;
  if (open) return;
  sessions_.clear();
  by_proxy_.clear();
}

// Runs until the connection or this object ends.
Result<void> SignedIn::serve_once() {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, client::connect(location_));
  GPUROTA_TRY(connection.start_stream(proto::ServeWeb{url_}));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const auto answer, connection.next_answer<proto::ServeWeb>());
    if (answer) set_open(answer->continues);
    if (answer && !answer->continues)
      return fail(Code::kUnavailable, "this daemon signs nobody in");
    pollfd entry{connection.fd(), POLLIN, 0};
    (void)::poll(&entry, 1, kCheckLineMs);
    const std::lock_guard lock(mutex_);
    if (over_) return {};
  }
}

void SignedIn::serve() {
  std::string told;  // the last complaint; each is reported once
  for (;;) {
    const auto served = serve_once();
    set_open(false);
    const bool denied = !served && served.error().code == Code::kDenied;
    // Without a page nobody could sign in.
    if (denied && !url_.starts_with("no-page:") && served.error().message != told) {
      told = served.error().message;
      complain_("nobody can sign in: " + told);
    }
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kRetry, [this] { return over_; });
    if (over_) return;
  }
}

std::optional<HttpResponse> SignedIn::refuse(const HttpRequest& request) {
  if (request.path != kSignInPath && request.path != kCallPath)
    return HttpResponse{405, "only GET\n"};
  if (!is_from_page(request)) return refusal(403, "only the page itself may ask for this");
  if (!is_json(request)) return refusal(415, "send JSON");
  const auto user = proxy_.user_of(request);
  if (!user) return refusal(403, user.error().message);
  // The daemon alone knows whether it accepts this page.
  if (request.path == kSignInPath) return std::nullopt;
  return check_session(request, *user);
}

std::optional<HttpResponse> SignedIn::refuse_reader(const HttpRequest& request) {
  // Browsers say in this header that another site's page sent them here.
  const auto site = request.header("sec-fetch-site");
  if (site && *site != "same-origin" && *site != "none") {
    return refusal(403, "only the page itself may ask for this");
  }
  const auto user = proxy_.user_of(request);
  if (!user) return refusal(403, user.error().message);
  return check_session(request, *user);
}

// `user`: the user that the proxy names.
std::optional<HttpResponse> SignedIn::check_session(const HttpRequest& request,
                                                    const std::string& user) {
  const std::lock_guard lock(mutex_);
  if (const auto token = token_of(request)) return slow_down(*token);
  if (user.empty()) return signed_out();
  const auto known = by_proxy_.find(user);
  return known == by_proxy_.end() ? std::nullopt : slow_down(known->second);
}

// Call it with the lock held. A session that is not listed is signed out.
std::optional<HttpResponse> SignedIn::slow_down(std::string_view token) {
  switch (sessions_.take_call(token, Clock::now())) {
    case KnownSessions::Call::kUnknown:
      return signed_out();
    case KnownSessions::Call::kTooFast:
      return refusal(429, "too many requests: wait a moment");
    case KnownSessions::Call::kTaken:
      break;
  }
  return std::nullopt;
}

// A connection that has unrequested input was closed by a daemon that restarted: connect again.
Result<std::string> SignedIn::Line::ask(const std::string& call, bool read_only,
                                        std::chrono::milliseconds patience) {
  pollfd entry{connection_ ? connection_->fd() : -1, POLLIN, 0};
  if (connection_ && ::poll(&entry, 1, 0) != 0) connection_.reset();
  if (!connection_) {
    GPUROTA_ASSIGN_OR_RETURN(connection_, client::connect(location_, patience));
  }
  auto answer = connection_->forward(call, read_only, patience);
  if (!answer) connection_.reset();
  return answer;
}

// Shows the user of the link, before the page uses it.
HttpResponse SignedIn::show_link(const proto::GetWebLink& call) {
  auto answer = actor_.ask(proto::call_json(call), true, kPatience);
  if (!answer) return refusal(503, answer.error().message);
  return {200, std::move(*answer), kJsonType};
}

// The body is the protocol's call. The page never gets the whole token.
HttpResponse SignedIn::sign_in(const HttpRequest& request) {
  auto call = proto::parse_call(request.body);
  const auto* const link = call ? std::get_if<proto::GetWebLink>(&call->params) : nullptr;
  if (link) return show_link(*link);
  auto* const secret = call ? std::get_if<proto::SignIn>(&call->params) : nullptr;
  if (!secret) return refusal(400, "this is neither a call of SignIn nor of GetWebLink");
  secret->from = request.peer;
  const auto answer = actor_.ask(proto::call_json(*secret), false, kPatience);
  if (!answer) return refusal(503, answer.error().message);
  auto opened = proto::parse_reply<proto::SignIn>(*answer);
  if (!opened) return refusal(403, opened.error().message);
  const std::string token = std::move(opened->reply.token);
  if (token.size() <= kKeyChars) return refusal(503, "the daemon's answer is malformed");
  {
    const std::lock_guard lock(mutex_);
    sessions_.add(token, static_cast<uid_t>(opened->reply.session.uid), Clock::now());
  }
  const std::size_t half = token.size() - kKeyChars;
  opened->reply.token = token.substr(half);
  HttpResponse response{200, proto::reply_json<proto::SignIn>(opened->reply), kJsonType};
  response.set_cookie =
      fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict{}", cookie_name(request),
                  token.substr(0, half), url_.starts_with("https:") ? "; Secure" : "");
  return response;
}

// The answer is the daemon's own, errors included.
HttpResponse SignedIn::call_with(const std::string& token, const HttpRequest& request) {
  const auto call = proto::parse_call(request.body);
  if (!call || call->more || call->oneway) return refusal(400, "this is not a call");
  bool may = false, read_only = false;
  const std::string text = std::visit(
      [&]<class Method>(const Method& params) {
        may = Method::kWeb;
        read_only = Method::kReadOnly;
        return proto::call_json(params, false, token);
      },
      call->params);
  if (!may) return refusal(403, "this cannot be done by the web page: use gpurota");
  auto answer = actor_.ask(text, read_only, kPatience);
  if (!answer) return refusal(503, answer.error().message);
  if (proto::error_word(*answer) == "SignedOut") {
    const std::lock_guard lock(mutex_);
    sessions_.remove(token);
    return signed_out();
  }
  return {200, std::move(*answer), kJsonType};
}

// On a connection of its own, because the answer is a stream.
Result<proto::SignInByProxy::Reply> SignedIn::sign_in_by_proxy(const std::string& user,
                                                               const HttpRequest& request) {
  const bool is_number = user.find_first_not_of("0123456789") == user.npos;
  if (is_number) return fail(Code::kDenied, "the proxy names a number, not a user");
  proto::SignInByProxy call;
  GPUROTA_ASSIGN_OR_RETURN(call.uid, read_uid(user));
  call.from = request.peer;
  const auto until = Clock::now() + kPatience;
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, client::connect(location_, kPatience));
  GPUROTA_TRY(connection.start_stream(call));
  while (Clock::now() < until) {
    GPUROTA_ASSIGN_OR_RETURN(const auto answer, connection.next_answer<proto::SignInByProxy>());
    if (answer) return answer->reply;
    pollfd entry{connection.fd(), POLLIN, 0};
    (void)::poll(&entry, 1, kCheckLineMs);
  }
  return fail(Code::kTimeout, "the daemon does not answer");
}

Result<std::string> SignedIn::token_by_proxy(const std::string& user, const HttpRequest& request) {
  const std::lock_guard one_at_a_time(signing_in_);
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_proxy_.find(user);
    if (known != by_proxy_.end() && sessions_.has(known->second)) return known->second;
  }
  GPUROTA_ASSIGN_OR_RETURN(const auto opened, sign_in_by_proxy(user, request));
  const std::lock_guard lock(mutex_);
  // The server in front chooses the names. Remove those whose sessions have ended: the next call
  // signs them in again.
  if (by_proxy_.size() >= KnownSessions::kMost) {
    std::erase_if(by_proxy_, [this](const auto& each) { return !sessions_.has(each.second); });
  }
  by_proxy_[user] = opened.token;
  sessions_.add(opened.token, static_cast<uid_t>(opened.session.uid), Clock::now());
  return opened.token;
}

// A session that has ended begins again: the proxy still vouches for the user.
HttpResponse SignedIn::call_by_proxy(const std::string& user, const HttpRequest& request) {
  HttpResponse response = signed_out();
  for (int tries = 0; tries < 2 && response.status == 401; ++tries) {
    const auto token = token_by_proxy(user, request);
    if (!token) return refusal(403, token.error().message);
    response = call_with(*token, request);
  }
  return response;
}

std::optional<HttpResponse> SignedIn::admit_with(const std::string& token) {
  const auto answer =
      reader_.ask(proto::call_json(proto::GetInfo{}, false, token), true, kPatience / 2);
  if (!answer) return refusal(503, answer.error().message);
  const auto error = proto::error_word(*answer);
  if (error == "SignedOut") {
    const std::lock_guard lock(mutex_);
    sessions_.remove(token);
    return signed_out();
  }
  return error.empty() ? std::nullopt : std::optional(refusal(403, "the daemon refuses this"));
}

std::optional<HttpResponse> SignedIn::admit(const HttpRequest& request) {
  if (const auto token = token_of(request)) return admit_with(*token);
  const auto user = proxy_.user_of(request);
  if (!user || user->empty()) return signed_out();
  std::optional<HttpResponse> refused = signed_out();
  for (int tries = 0; tries < 2 && refused && refused->status == 401; ++tries) {
    const auto token = token_by_proxy(*user, request);
    if (!token) return refusal(403, token.error().message);
    refused = admit_with(*token);
  }
  return refused;
}

HttpResponse SignedIn::act(const HttpRequest& request) {
  if (request.path == kSignInPath) return sign_in(request);
  if (const auto token = token_of(request)) return call_with(*token, request);
  const auto user = proxy_.user_of(request);
  return user && !user->empty() ? call_by_proxy(*user, request) : signed_out();
}

}  // namespace gpurota::web
