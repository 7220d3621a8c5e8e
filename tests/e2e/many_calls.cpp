// Calls the daemon many times, each time on a new connection, as `gpurota status` does: many_calls
// SOCKET COUNT
//
// Prints how many calls failed and the longest wait for an answer; errors go to standard error.
#include "client/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using gpurota::client::Connection;

constexpr int kThreads = 4;
constexpr std::chrono::milliseconds kPause{1};  // so that the calls outlast one restart

gpurota::Result<void> ask(const std::string& socket) {
  GPUROTA_ASSIGN_OR_RETURN(Connection connection, Connection::open(socket));
  GPUROTA_TRY(connection.call(gpurota::proto::Status{}));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string socket = argv[1];
  std::atomic<int> left{std::atoi(argv[2])}, failed{0};
  std::vector<Clock::duration> longest(kThreads);
  std::vector<std::thread> threads;
  for (Clock::duration& wait : longest) {
    threads.emplace_back([&] {
      while (left-- > 0) {
        const Clock::time_point begun = Clock::now();
        if (const auto done = ask(socket); !done) {
          ++failed;
          fmt::print(stderr, "{}\n", done.error().message);
        }
        wait = std::max(wait, Clock::now() - begun);
        std::this_thread::sleep_for(kPause);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(
      *std::max_element(longest.begin(), longest.end()));
  fmt::print("{} of {} calls failed, the longest wait was {} ms\n", failed.load(), argv[2],
             most.count());
  return failed == 0 ? 0 : 1;
}
