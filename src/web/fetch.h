// Fetches a short text from several URLs at the same time, each within a time limit. Follows no
// redirection, uses no proxy, supports http and https only, and checks certificates. Uses libcurl,
// whose header stays in fetch.cpp; in a build without libcurl (no_fetch.cpp), make_fetcher()
// returns an error. One thread.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::web {

class Fetcher {
 public:
  struct Options {
    std::string bearer{};   // the token sent to each
    std::string ca_file{};  // empty: the authorities that the system trusts
    std::chrono::milliseconds patience{3000};
    std::size_t most_bytes = 0;  // of an answer, including its head
  };
  // Called once for each URL, with the result of the n-th URL as soon as it is known.
  using OnAnswer = std::function<void(std::size_t n, Result<std::string> text)>;

  virtual ~Fetcher() = default;
  // Returns when all answers have been delivered, or when `is_over` holds; then some answers are
  // missing.
  virtual void fetch(const std::vector<std::string>& urls, const OnAnswer& on_answer,
                     const std::function<bool()>& is_over) = 0;
};

// Call it before other threads start.
Result<std::unique_ptr<Fetcher>> make_fetcher(Fetcher::Options options);

}  // namespace gpurota::web
