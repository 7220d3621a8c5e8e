#include "web/fetch.h"

#include "base/text.h"
#include "proto/service.h"

#include <fmt/format.h>

#include <list>
#include <string_view>
#include <utility>

#include <curl/curl.h>

namespace gpurota::web {
namespace {

// How long fetch() may take to notice that `is_over` holds.
constexpr int kPollMs = 200;

struct Easy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct Multi {
  void operator()(CURLM* handle) const { (void)curl_multi_cleanup(handle); }
};
struct Headers {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// One request under way.
struct Transfer {
  std::size_t which = 0;
  std::size_t most = 0, seen = 0;  // bytes of head and body
  bool too_long = false;
  std::string body{};
  char error[CURL_ERROR_SIZE] = {};
  std::unique_ptr<CURL, Easy> handle{};
};

// Returns what libcurl expects: any number other than `size` ends the transfer.
std::size_t take(Transfer& transfer, const char* data, std::size_t size, bool is_body) {
  transfer.seen += size;
  transfer.too_long = transfer.seen > transfer.most;
  if (transfer.too_long) return 0;
  if (is_body) transfer.body.append(data, size);
  return size;
}
std::size_t on_body(char* data, std::size_t, std::size_t size, void* transfer) {
  return take(*static_cast<Transfer*>(transfer), data, size, true);
}
std::size_t on_head(char* data, std::size_t, std::size_t size, void* transfer) {
  return take(*static_cast<Transfer*>(transfer), data, size, false);
}

Result<std::string> refusal(long status) {
  switch (status) {
    case 401:
      return fail(Code::kDenied, "it refuses the token: --fleet-token has to be the same there");
    case 404:
      return fail(Code::kNotFound, "it tells no totals: its gpurota-web needs --fleet-token");
    case 421:
      return fail(Code::kDenied,
                  "it does not answer to this name: its gpurota-web needs --allow-host");
    case 429:
      return fail(Code::kUnavailable, "it is asked too often");
    default:
      return fail(Code::kUnavailable, fmt::format("it answered with the HTTP status {}", status));
  }
}

class CurlFetcher final : public Fetcher {
 public:
  CurlFetcher(Options options, std::unique_ptr<CURLM, Multi> multi,
              std::unique_ptr<curl_slist, Headers> headers)
      : options_(std::move(options)), multi_(std::move(multi)), headers_(std::move(headers)) {}

  void fetch(const std::vector<std::string>& urls, const OnAnswer& on_answer,
             const std::function<bool()>& is_over) override {
    std::list<Transfer> transfers;
    for (std::size_t i = 0; i < urls.size(); ++i) {
      Transfer& transfer = transfers.emplace_back();
      transfer.which = i;
      if (begin(transfer, urls[i])) continue;
      transfers.pop_back();
      on_answer(i, fail(Code::kUnavailable, "it cannot be asked: no memory is left"));
    }
    int running = 1;
    while (running > 0 && !is_over()) {
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) break;
      take_answers(transfers, on_answer);
      if (running > 0) (void)curl_multi_poll(multi_.get(), nullptr, 0, kPollMs, nullptr);
    }
    for (Transfer& each : transfers) {
      (void)curl_multi_remove_handle(multi_.get(), each.handle.get());
      if (!is_over()) on_answer(each.which, fail(Code::kUnavailable, "libcurl gave it up"));
    }
  }

 private:
  bool begin(Transfer& transfer, const std::string& url) {
    transfer.handle.reset(curl_easy_init());
    transfer.most = options_.most_bytes;
    CURL* const handle = transfer.handle.get();
    if (handle == nullptr) return false;
    bool set = true;
    const auto option = [&](CURLoption name, auto value) {
      set = curl_easy_setopt(handle, name, value) == CURLE_OK && set;
    };
    option(CURLOPT_URL, url.c_str());
    option(CURLOPT_PROTOCOLS_STR, "http,https");
    option(CURLOPT_FOLLOWLOCATION, 0L);  // a redirection would send the token to another host
    option(CURLOPT_PROXY, "");
    option(CURLOPT_HTTPHEADER, headers_.get());
    option(CURLOPT_USERAGENT, user_agent_.c_str());
    option(CURLOPT_NOSIGNAL, 1L);
    option(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.patience.count()));
    option(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.patience.count()));
    option(CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name lookup under way
    if (!options_.ca_file.empty()) option(CURLOPT_CAINFO, options_.ca_file.c_str());
    option(CURLOPT_ERRORBUFFER, transfer.error);
    option(CURLOPT_PRIVATE, &transfer);
    option(CURLOPT_WRITEFUNCTION, on_body);
    option(CURLOPT_WRITEDATA, &transfer);
    option(CURLOPT_HEADERFUNCTION, on_head);
    option(CURLOPT_HEADERDATA, &transfer);
    return set && curl_multi_add_handle(multi_.get(), handle) == CURLM_OK;
  }

  void take_answers(std::list<Transfer>& transfers, const OnAnswer& on_answer) {
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* found = nullptr;
      (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
      auto* const transfer = reinterpret_cast<Transfer*>(found);
      const CURLcode code = message->data.result;
      on_answer(transfer->which, result_of(*transfer, code));
      (void)curl_multi_remove_handle(multi_.get(), transfer->handle.get());
      transfers.remove_if([&](const Transfer& each) { return &each == transfer; });
    }
  }

  Result<std::string> result_of(Transfer& transfer, CURLcode code) const {
    // libcurl reports "out of memory" for a line longer than it accepts.
    if (transfer.too_long || code == CURLE_OUT_OF_MEMORY) {
      return fail(Code::kInvalid, "its answer is malformed: it is too long");
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
      return fail(Code::kTimeout,
                  fmt::format("no answer within {} s", options_.patience.count() / 1000));
    }
    if (code != CURLE_OK) {
      const std::string_view why =
          transfer.error[0] != 0 ? std::string_view(transfer.error) : curl_easy_strerror(code);
      return fail(Code::kGone, "it cannot be reached: " + display_text(why, 160));
    }
    long status = 0;
    (void)curl_easy_getinfo(transfer.handle.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) return refusal(status);
    return std::move(transfer.body);
  }

  Options options_;
  std::unique_ptr<CURLM, Multi> multi_;
  std::unique_ptr<curl_slist, Headers> headers_;
  std::string user_agent_ = "gpurota-web/" + std::string(proto::version());
};

}  // namespace

Result<std::unique_ptr<Fetcher>> make_fetcher(Fetcher::Options options) {
  const bool begun = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  std::unique_ptr<CURLM, Multi> multi(begun ? curl_multi_init() : nullptr);
  const std::string line = "Authorization: Bearer " + options.bearer;
  std::unique_ptr<curl_slist, Headers> headers(curl_slist_append(nullptr, line.c_str()));
  if (!multi || !headers) return fail(Code::kUnavailable, "libcurl cannot be used");
  return std::make_unique<CurlFetcher>(std::move(options), std::move(multi), std::move(headers));
}

}  // namespace gpurota::web
