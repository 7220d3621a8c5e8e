// Fetches a short text from each of several URLs at the same time, each within a time limit.
// Follows no redirection, asks no proxy, speaks http and https only, and checks certificates. By
// libcurl, whose header stays in fetch.cpp; where gpurota-web is built without it (no_fetch.cpp),
// make_fetcher() says so. One thread.
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
    std::string bearer{};   // the token that each is shown
    std::string ca_file{};  // empty: the authorities that the system trusts
    std::chrono::milliseconds patience{3000};
    std::size_t most_bytes = 0;  // of an answer, its head included
  };
  // Called with the result of the n-th URL as soon as it is known, once for each.
  using OnAnswer = std::function<void(std::size_t n, Result<std::string> text)>;

  virtual ~Fetcher() = default;
  // Returns when all have been told of, or `is_over` says so, in which case some are not.
  virtual void fetch(const std::vector<std::string>& urls, const OnAnswer& on_answer,
                     const std::function<bool()>& is_over) = 0;
};

// Before other threads begin.
Result<std::unique_ptr<Fetcher>> make_fetcher(Fetcher::Options options);

}  // namespace gpurota::web
