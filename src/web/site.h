// The answers of gpurota-web to each path: metrics and health, the page's files, and the page's
// data below /api/. HttpServer calls quick() on its own thread, and the rest on the thread that may
// wait. Never shows more than the page level allows (page_json.h).
#pragma once

#include "web/fleet.h"
#include "web/http_request.h"
#include "web/page_assets.h"
#include "web/page_json.h"
#include "web/signed_in.h"
#include "web/source.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::web {

class Site {
 public:
  struct Options {
    std::vector<std::string> hosts{};  // names that are accepted
    Extra extra{};
    PageLevel level = PageLevel::kTotals;
    std::string machine{};  // the machine's name among others
  };

  // `signed_in`: acts for signed-in users; null: nobody can sign in. `fleet`: null: there is no
  // other machine, and no client for this machine's totals.
  Site(client::Location location, Options options, const std::vector<PageAsset>& assets,
       SignedIn* signed_in = nullptr, Fleet* fleet = nullptr)
      : source_(std::move(location)),
        options_(std::move(options)),
        assets_(assets),
        signed_in_(signed_in),
        fleet_(fleet) {}

  // nullopt: call slow().
  std::optional<HttpResponse> quick(const HttpRequest& request) const;
  HttpResponse slow(const HttpRequest& request);
  // The next event of /api/live: the JSON of /api/now.
  std::string event();

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    HttpResponse response;
    Clock::time_point until;
  };

  const char* sign_in_way() const { return signed_in_ ? signed_in_->sign_in_way() : "none"; }
  std::size_t machine_count() const { return 1 + (fleet_ ? fleet_->peers() : 0); }
  std::string now();
  bool has_page() const { return options_.level != PageLevel::kNone && !assets_.empty(); }
  std::optional<HttpResponse> quick_api(const HttpRequest& request) const;
  HttpResponse slow_api(const HttpRequest& request);
  HttpResponse page_file(const HttpRequest& request) const;
  HttpResponse without_page() const;
  HttpResponse history(std::chrono::seconds length);
  HttpResponse events();
  HttpResponse hours(std::chrono::seconds length);
  HttpResponse turns();
  HttpResponse machines();
  template <class Make>
  HttpResponse kept(const std::string& path, std::chrono::seconds age, Make make);

  Source source_;
  Options options_;
  const std::vector<PageAsset>& assets_;
  SignedIn* signed_in_;
  Fleet* fleet_;
  std::map<std::string, Kept> kept_;  // by path: one answer for all who ask within its time
};

}  // namespace gpurota::web
