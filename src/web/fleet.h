// The machines of a site on one page. Fetches the totals of each peer from its gpurota-web while
// somebody views the page, and sends its own totals to clients that know the token. Read-only, and
// no scheduler: what a peer sends affects only its row. A separate thread waits for the peers;
// everything else returns at once. Any thread.
#pragma once

#include "base/token_bucket.h"
#include "web/fetch.h"
#include "web/http_request.h"
#include "web/page_json.h"
#include "web/totals.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace gpurota::web {

struct Peer {
  std::string name;
  std::string url;  // of its page, ending in '/'
  bool operator==(const Peer&) const = default;
};

// "gpu2=https://gpu2.example.org:9836/"; without "gpu2=" the name is the host in the URL.
Result<Peer> parse_peer(std::string_view text);
// Whether others on the network can read what is sent to the peer.
bool is_open(const Peer& peer);

class Fleet {
 public:
  static constexpr std::size_t kMostPeers = 64;
  static constexpr std::string_view kPath = "api/totals";
  // The time between two rounds while the page is viewed.
  static constexpr std::chrono::seconds kPeriod{5};
  // How long the page counts as viewed after a request.
  static constexpr std::chrono::seconds kViewed{20};
  // How often our totals may be fetched: enough for 64 peers in each of their rounds, with some to
  // spare.
  static constexpr int kTotalsAtOnce = 100;
  static constexpr TokenRate kTotals{kTotalsAtOnce, kPeriod};

  struct Options {
    std::vector<Peer> peers{};
    std::string token_file{};  // empty: no client gets the totals
    std::string ca_file{};
  };
  // kInvalid: the options contradict each other.
  static Result<std::unique_ptr<Fleet>> make(const Options& options);
  // `fetcher`: null if there are no peers.
  Fleet(std::vector<Peer> peers, std::string token, std::unique_ptr<Fetcher> fetcher);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Starts the thread that asks the peers. Call it once.
  Result<void> begin();

  std::size_t peers() const { return peers_.size(); }
  // Checks a request for kPath: the refusal, or nullopt if the request may be answered.
  std::optional<HttpResponse> refuse(const HttpRequest& request);
  // The text of /api/machines; `here` are the totals of this machine.
  std::string machines_json(const Totals& here, const std::string& host, PageLevel level);

 private:
  using Clock = std::chrono::steady_clock;
  struct Row {
    std::optional<Result<Totals>> answer{};  // nullopt: not asked yet
  };

  void run();
  void ask_all();
  bool is_viewed() const { return viewed_at_ && Clock::now() - *viewed_at_ < kViewed; }

  std::vector<Peer> peers_;
  std::string token_;
  std::unique_ptr<Fetcher> fetcher_;  // used by the thread only
  mutable std::mutex mutex_;          // guards the members below
  std::condition_variable wake_;
  std::vector<Row> rows_;
  std::optional<Clock::time_point> viewed_at_;
  TokenBucket calls_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace gpurota::web
