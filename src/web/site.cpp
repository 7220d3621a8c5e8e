#include "web/site.h"

#include "web/history_json.h"
#include "web/host_check.h"
#include "web/json.h"
#include "web/page_json.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace gpurota::web {
namespace {

constexpr const char* kJson = "application/json";

// The ranges of the page's charts, and how long an answer is cached.
struct Range {
  std::string_view path;
  std::chrono::seconds length, age;
};
constexpr std::chrono::hours kDay{24};
constexpr std::array kRanges = {
    Range{"/api/history/15m", std::chrono::minutes(15), std::chrono::seconds(2)},
    Range{"/api/history/1h", std::chrono::hours(1), std::chrono::seconds(10)},
    Range{"/api/history/24h", kDay, std::chrono::seconds(30)},
    Range{"/api/history/7d", 7 * kDay, std::chrono::seconds(60)},
    Range{"/api/history/90d", 90 * kDay, std::chrono::seconds(300)},
};

// The ranges of the page's GPU hours.
constexpr std::array kHours = {
    Range{"/api/hours/24h", kDay, std::chrono::seconds(60)},
    Range{"/api/hours/7d", 7 * kDay, std::chrono::seconds(60)},
    Range{"/api/hours/90d", 90 * kDay, std::chrono::seconds(300)},
};

template <class Ranges>
const Range* find_range(const Ranges& ranges, std::string_view path) {
  const auto found = std::find_if(ranges.begin(), ranges.end(),
                                  [&](const Range& range) { return range.path == path; });
  return found == ranges.end() ? nullptr : &*found;
}

WallTime site_time() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

HttpResponse trouble(const Error& error) {
  return {503, JsonObject().add("error", error.message).take().text + "\n", kJson};
}

bool is_totals_path(std::string_view path) {
  return path.starts_with('/') && path.substr(1) == Fleet::kPath;
}

bool is_metrics_path(std::string_view path) { return path == "/metrics" || path == "/readyz"; }

bool is_api_path(std::string_view path) {
  return path == "/api/now" || path == "/api/events" || path == "/api/turns" ||
         path == "/api/machines" || find_range(kRanges, path) != nullptr ||
         find_range(kHours, path) != nullptr;
}

}  // namespace

std::optional<HttpResponse> Site::quick(const HttpRequest& request) const {
  if (!is_our_host(request.host, options_.hosts)) {
    return HttpResponse{421, "this name is not served here: see --allow-host of gpurota-web\n"};
  }
  if (request.is_post() && signed_in_) return signed_in_->refuse(request);
  if (request.method != "GET" && request.method != "HEAD") return HttpResponse{405, "only GET\n"};
  if (request.path == "/healthz") return HttpResponse{200, "ok\n"};
  if (is_metrics_path(request.path)) return std::nullopt;
  if (is_totals_path(request.path) && fleet_) return fleet_->refuse(request);
  const bool is_api = is_api_path(request.path) || request.path == "/api/live";
  if (is_api && options_.level != PageLevel::kNone) return quick_api(request);
  if (request.path == "/" && !has_page()) return without_page();
  return page_file(request);
}

std::optional<HttpResponse> Site::quick_api(const HttpRequest& request) const {
  const bool is_stream = request.path == "/api/live";
  if (options_.level == PageLevel::kSignedIn) {
    if (!signed_in_) return HttpResponse{401, "nobody can sign in here, so nothing is shown\n"};
    // An open stream would outlive its session.
    if (is_stream) return HttpResponse{404, "with --page signed-in, ask for /api/now\n"};
    return signed_in_->refuse_reader(request);
  }
  if (!is_stream) return std::nullopt;
  HttpResponse response{200, "retry: 2000\n\n", "text/event-stream"};
  response.is_stream = true;
  return response;
}

HttpResponse Site::without_page() const {
  if (options_.level == PageLevel::kNone) {
    return {404,
            "there is no page here, as gpurota-web was started with --page none: try /metrics\n"};
  }
  return {404,
          "this gpurota-web was built without the page, as npm was not to be had: try /metrics or "
          "/api/now\n"};
}

HttpResponse Site::page_file(const HttpRequest& request) const {
  const auto asset = std::find_if(assets_.begin(), assets_.end(),
                                  [&](const PageAsset& each) { return each.path == request.path; });
  if (asset == assets_.end() || !has_page()) {
    return {404, "not found: try /, /metrics, /healthz or /readyz\n"};
  }
  HttpResponse response{200, "", std::string(asset->content_type)};
  response.etag = asset->etag;
  if (request.if_none_match.find(asset->etag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  response.is_gzip = request.accepts_gzip;
  response.body = request.accepts_gzip ? asset->gzip : asset->plain;
  return response;
}

template <class Make>
HttpResponse Site::kept(const std::string& path, std::chrono::seconds age, Make make) {
  const auto now = Clock::now();
  if (const auto found = kept_.find(path); found != kept_.end() && now < found->second.until) {
    return found->second.response;
  }
  HttpResponse response = make();
  // A daemon that does not answer now may answer soon: cache an error for 1 s only.
  const auto lasts = response.status == 200 ? age : std::chrono::seconds(1);
  return kept_.insert_or_assign(path, Kept{std::move(response), Clock::now() + lasts})
      .first->second.response;
}

HttpResponse Site::history(std::chrono::seconds length) {
  const auto reply = source_.history(length);
  if (!reply) return trouble(reply.error());
  return {200, history_json(*reply), kJson};
}

HttpResponse Site::events() {
  const auto reply = source_.events(kDay);
  if (!reply) return trouble(reply.error());
  return {200, events_json(*reply, options_.level), kJson};
}

HttpResponse Site::hours(std::chrono::seconds length) {
  const auto by_gpu = source_.report(length, "gpu");
  if (!by_gpu) return trouble(by_gpu.error());
  const auto by_user = source_.report(length, "user");
  if (!by_user) return trouble(by_user.error());
  const auto snapshot = source_.get();
  const auto gpus = snapshot ? snapshot->status.gpus : std::vector<proto::Gpu>();
  return {200, hours_json(*by_gpu, *by_user, gpus, options_.level), kJson};
}

HttpResponse Site::turns() {
  const auto snapshot = source_.get();
  if (!snapshot) return trouble({.code = Code::kGone, .message = "the daemon does not answer"});
  return {200, turns_json(*snapshot, site_time(), options_.level), kJson};
}

HttpResponse Site::machines() {
  if (!fleet_) return {404, "this page shows one machine\n"};
  const Totals here = totals_of(source_.get(), shows_names(options_.level));
  return {200, fleet_->machines_json(here, options_.machine, options_.level), kJson};
}

std::string Site::now() {
  return now_json(source_.get(), site_time(), options_.level, sign_in_way(), machine_count());
}

HttpResponse Site::slow_api(const HttpRequest& request) {
  if (options_.level == PageLevel::kSignedIn) {
    if (const auto refused = signed_in_->admit(request)) return *refused;
  }
  if (request.path == "/api/now") return {200, now(), kJson};
  if (request.path == "/api/machines") return machines();
  if (request.path == "/api/events") {
    return kept(request.path, std::chrono::seconds(2), [this] { return events(); });
  }
  if (const Range* range = find_range(kHours, request.path)) {
    return kept(request.path, range->age, [&] { return hours(range->length); });
  }
  if (const Range* range = find_range(kRanges, request.path)) {
    return kept(request.path, range->age, [&] { return history(range->length); });
  }
  return turns();
}

HttpResponse Site::slow(const HttpRequest& request) {
  if (request.path == "/metrics") {
    return {200, metrics_text(source_.get(), site_time(), options_.extra),
            "text/plain; version=0.0.4; charset=utf-8"};
  }
  if (is_totals_path(request.path)) {
    const bool names = options_.level == PageLevel::kNames;
    return {200, totals_json(totals_of(source_.get(), names)), kJson};
  }
  if (is_api_path(request.path)) return slow_api(request);
  const std::string why = not_ready_because(source_.get());
  return why.empty() ? HttpResponse{200, "ready\n"} : HttpResponse{503, why + "\n"};
}

std::string Site::event() { return "data: " + now() + "\n\n"; }

}  // namespace gpurota::web
