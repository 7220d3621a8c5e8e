#include "web/fleet.h"

#include "base/same_secret.h"
#include "base/text.h"
#include "base/threads.h"
#include "web/host_check.h"
#include "web/secret_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::web {
namespace {

constexpr std::size_t kLongestPeerName = 60;

// "gpu2.example.org:9836" of "https://gpu2.example.org:9836/x".
std::string_view authority_of(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return url.substr(0, url.find('/'));
}

// The host without the port: "::1" for "[::1]:80".
std::string_view host_in_url(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestPeerName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return c > ' ' && c < 127 && c != '/' && c != '"' && c != '<' && c != '>';
         });
}

bool is_url(std::string_view url) {
  const bool plain = std::all_of(url.begin(), url.end(), [](char c) {
    return c > ' ' && c < 127 &&
           std::string_view("\"'<>\\^`{|}#?@").find(c) == std::string_view::npos;
  });
  if (!plain || !(url.starts_with("http://") || url.starts_with("https://"))) return false;
  return !host_in_url(authority_of(url)).empty();
}

Json row_json(const Peer& peer, const std::optional<Result<Totals>>& answer, bool names) {
  JsonObject row;
  row.add("name", peer.name).add("url", peer.url).add("here", false);
  if (!answer) return row.add("state", "asked").take();
  if (!*answer) return row.add("state", "fails").add("error", answer->error().message).take();
  Totals totals = **answer;
  if (!names) totals.users.reset();
  row.add("state", "answers");
  add_totals(row, totals);
  return row.take();
}

}  // namespace

Result<Peer> parse_peer(std::string_view text) {
  const std::size_t scheme = text.find("://");
  const std::size_t equals = text.substr(0, scheme).find('=');
  Peer peer;
  peer.url = equals == text.npos ? text : text.substr(equals + 1);
  if (!is_url(peer.url)) {
    return fail(Code::kInvalid, "--peer: '" + display_text(text, 80) +
                                    "' is not the address of a page: write "
                                    "gpu2=https://gpu2.example.org:9836/");
  }
  if (!peer.url.ends_with('/')) peer.url += '/';
  peer.name = equals == text.npos ? host_in_url(authority_of(peer.url)) : text.substr(0, equals);
  if (is_name(peer.name)) return peer;
  return fail(Code::kInvalid, "--peer: '" + display_text(peer.name, 80) +
                                  "' is not the name of a machine: write "
                                  "gpu2=https://gpu2.example.org:9836/");
}

bool is_open(const Peer& peer) {
  if (peer.url.starts_with("https://")) return false;
  const std::string host(host_in_url(authority_of(peer.url)));
  return !is_loopback({host == "localhost" ? "127.0.0.1" : host, 0});
}

Result<std::unique_ptr<Fleet>> Fleet::make(const Options& options) {
  if (options.token_file.empty() && !options.peers.empty()) {
    return fail(Code::kInvalid,
                "--peer needs --fleet-token FILE: the secret that the machines of the fleet share");
  }
  if (options.peers.size() > kMostPeers) {
    return fail(Code::kInvalid, fmt::format("--peer: a page shows at most {} other machines, and "
                                            "these are {}",
                                            kMostPeers, options.peers.size()));
  }
  std::string token;
  std::unique_ptr<Fetcher> fetcher;
  if (!options.token_file.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(token, read_secret("--fleet-token", options.token_file));
  }
  if (!options.peers.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(fetcher, make_fetcher({.bearer = token,
                                                    .ca_file = options.ca_file,
                                                    .most_bytes = Totals::kMostBytes}));
  }
  return std::make_unique<Fleet>(options.peers, std::move(token), std::move(fetcher));
}

Fleet::Fleet(std::vector<Peer> peers, std::string token, std::unique_ptr<Fetcher> fetcher)
    : peers_(std::move(peers)),
      token_(std::move(token)),
      fetcher_(std::move(fetcher)),
      rows_(peers_.size()) {}

Fleet::~Fleet() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> Fleet::begin() {
  if (peers_.empty()) return {};
  GPUROTA_ASSIGN_OR_RETURN(thread_, start_thread([this] { run(); }));
  return {};
}

void Fleet::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    wake_.wait(lock, [this] { return over_ || is_viewed(); });
    if (over_) return;
    lock.unlock();
    ask_all();
    lock.lock();
    wake_.wait_for(lock, kPeriod, [this] { return over_; });
  }
}

// Each row is set as soon as its peer has answered, without waiting for the others.
void Fleet::ask_all() {
  std::vector<std::string> urls;
  for (const Peer& peer : peers_) urls.push_back(peer.url + std::string(kPath));
  const auto on_answer = [this](std::size_t n, Result<std::string> text) {
    auto totals = text ? parse_totals(*text) : tl::unexpected(std::move(text).error());
    const std::lock_guard lock(mutex_);
    rows_[n].answer = std::move(totals);
  };
  fetcher_->fetch(urls, on_answer, [this] {
    const std::lock_guard lock(mutex_);
    return over_;
  });
}

std::optional<HttpResponse> Fleet::refuse(const HttpRequest& request) {
  if (token_.empty()) return HttpResponse{404, "totals are told with --fleet-token only\n"};
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view shown = request.header("authorization").value_or("");
  if (!shown.starts_with(kBearer) || !is_same_secret(token_, shown.substr(kBearer.size()))) {
    return HttpResponse{401, "this is told to those who show the token of the fleet\n"};
  }
  const std::lock_guard lock(mutex_);
  if (calls_.take(Clock::now(), kTotals)) return std::nullopt;
  return HttpResponse{429, "too many requests: wait a moment\n"};
}

std::string Fleet::machines_json(const Totals& here, const std::string& host, PageLevel level) {
  JsonObject own;
  own.add("name", host).add("url", "").add("here", true);
  own.add("state", "answers");
  add_totals(own, here);
  std::string rows = "[" + own.take().text;
  {
    const std::lock_guard lock(mutex_);
    if (!is_viewed()) rows_.assign(peers_.size(), Row());  // the old answers are out of date
    viewed_at_ = Clock::now();
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      rows += "," + row_json(peers_[i], rows_[i].answer, shows_names(level)).text;
    }
  }
  wake_.notify_all();
  return JsonObject().add("level", to_string(level)).add("machines", Json{rows + "]"}).take().text;
}

}  // namespace gpurota::web
