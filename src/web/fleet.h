// The machines of a site on one page: asks the gpurota-web of each for its totals, while somebody
// looks, and tells its own to those that know the token. Read-only, and no scheduler: nothing of
// what a peer says has an effect beyond its row. A thread of its own waits for the peers; all else
// returns at once. Any thread.
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
  std::string url;  // of its page, with a '/' at its end
  bool operator==(const Peer&) const = default;
};

// "gpu2=https://gpu2.example.org:9836/"; without a name it is that of the URL.
Result<Peer> parse_peer(std::string_view text);
// Whether what is sent there can be read by whoever is between.
bool is_open(const Peer& peer);

class Fleet {
 public:
  static constexpr std::size_t kMostPeers = 64;
  static constexpr std::string_view kPath = "api/totals";
  // Between two rounds, while the page is viewed; and for how long a request counts as a viewer.
  static constexpr std::chrono::seconds kPeriod{5};
  static constexpr std::chrono::seconds kViewed{20};
  // So often may our totals be fetched: by 64 peers in each of their rounds, and some more.
  static constexpr int kTotalsAtOnce = 100;
  static constexpr TokenRate kTotals{kTotalsAtOnce, kPeriod};

  struct Options {
    std::vector<Peer> peers{};
    std::string token_file{};  // empty: nobody is told
    std::string ca_file{};
  };
  // kInvalid: the options do not go together.
  static Result<std::unique_ptr<Fleet>> make(const Options& options);
  // `fetcher`: null where there are no peers.
  Fleet(std::vector<Peer> peers, std::string token, std::unique_ptr<Fetcher> fetcher);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Asks the peers on a thread of its own from now on. Once.
  Result<void> begin();

  std::size_t peers() const { return peers_.size(); }
  // Of a request for kPath: what is wrong with it. Nothing: it may be answered.
  std::optional<HttpResponse> refuse(const HttpRequest& request);
  // The text of /api/machines; `here`: this machine.
  std::string machines_json(const Totals& here, const std::string& host, PageLevel level);

 private:
  using Clock = std::chrono::steady_clock;
  struct Row {
    std::optional<Result<Totals>> answer{};  // nothing: it has not been asked yet
  };

  void run();
  void ask_all();
  bool is_viewed() const { return viewed_at_ && Clock::now() - *viewed_at_ < kViewed; }

  std::vector<Peer> peers_;
  std::string token_;
  std::unique_ptr<Fetcher> fetcher_;  // of the thread
  mutable std::mutex mutex_;          // guards what follows
  std::condition_variable wake_;
  std::vector<Row> rows_;
  std::optional<Clock::time_point> viewed_at_;
  TokenBucket calls_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace gpurota::web
