// gpurota park, and unpark.
//
// A lease without room on its GPUs waits in the daemon, and not in this command, which only asks
// until the lease is back. So Ctrl-C, and the end of --wait, leave the lease waiting.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/text/done_text.h"
#include "cli/text/output.h"
#include "cli/text/time_text.h"
#include "client/reason_text.h"
#include "proto/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

namespace gpurota::cli {
namespace {

using ParkClock = std::chrono::steady_clock;

// The driver moves 1.6 GiB in a second.
constexpr std::chrono::milliseconds kLongestPark = std::chrono::minutes(15);
constexpr std::chrono::milliseconds kAskEvery{500};

std::string why_waiting(const proto::Lease& lease) {
  return lease.park_wait ? client::reason_text(*lease.park_wait, now()) : "waits for room";
}

// Asks the daemon until a lease that waits for room is back.
class ReturnWaiter {
 public:
  ReturnWaiter(const Context& context, const ParkOptions& options)
      : context_(context), options_(options), id_(to_string(options.lease)) {
    if (options.wait) until_ = ParkClock::now() + *options.wait;
  }

  int wait(proto::Lease lease) {
    for (;;) {
      if (const auto status = status_of(lease)) return *status;
      if (until_ && ParkClock::now() >= *until_) return time_over();
      std::this_thread::sleep_for(
          until_ ? std::min<ParkClock::duration>(kAskEvery, *until_ - ParkClock::now())
                 : ParkClock::duration(kAskEvery));
      const auto seen = ask();
      if (!seen) continue;
      if (seen->empty()) {
        complain(id_ + " has ended");
        return kExitFailed;
      }
      lease = seen->front();
    }
  }

 private:
  // The exit status; nothing: the lease is still being parked or brought back.
  std::optional<int> status_of(const proto::Lease& lease) {
    if (!lease.parked) return done(context_, id_ + " is back on its GPU");
    if (*lease.parked == proto::ParkState::kParked) {
      complain(lease.park_trouble ? display_text(*lease.park_trouble, 400)
                                  : id_ + " stays parked: 'gpurota park' has ended its wait");
      return kExitFailed;
    }
    if (*lease.parked != proto::ParkState::kWaiting) return std::nullopt;
    const std::string why = why_waiting(lease);
    if (why != shown_ && !context_.quiet) {
      complain(fmt::format("{}: {}{}", id_, why,
                           shown_.empty() ? "; Ctrl-C ends only this command, and 'gpurota park " +
                                                id_ + "' ends the wait"
                                          : ""));
    }
    shown_ = why;
    return std::nullopt;
  }

  int time_over() const {
    complain(
        fmt::format("gave up after {}: {}: {}; it is still brought back as soon as there is "
                    "room",
                    duration_text(*options_.wait), id_, shown_));
    return kExitNoGpu;
  }

  // The lease, if there is one; an error: the daemon does not answer.
  Result<std::vector<proto::Lease>> ask() {
    auto connection = context_.connect();
    auto status = connection ? connection->call(proto::Status{})
                             : Result<proto::Status::Reply>(tl::unexpected(connection.error()));
    if (!status) {
      if (!away_) complain("gpurotad has gone away; waiting for it to come back");
      away_ = true;
      return tl::unexpected(status.error());
    }
    away_ = false;
    std::vector<proto::Lease> leases = std::move(status->leases);
    std::erase_if(leases,
                  [&](const proto::Lease& each) { return to_string(each.lease_id) != id_; });
    return leases;
  }

  const Context& context_;
  const ParkOptions& options_;
  const std::string id_;
  std::optional<ParkClock::time_point> until_;
  std::string shown_;
  bool away_ = false;
};

}  // namespace

int park(const Context& context, const ParkOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const std::string id = to_string(options.lease);
  if (options.parks) {
    const auto parked = connection->call(proto::Park{options.lease}, kLongestPark);
    if (!parked) return failed(parked.error());
    return done(context, fmt::format("{} is parked: 'gpurota unpark {}' brings it back", id, id));
  }
  const auto back = connection->call(proto::Unpark{options.lease}, kLongestPark);
  if (!back) return failed(back.error());
  if (options.no_wait && back->lease.parked) {
    return done(context, fmt::format("{}: {}; it is brought back as soon as there is room", id,
                                     why_waiting(back->lease)));
  }
  return ReturnWaiter(context, options).wait(back->lease);
}

}  // namespace gpurota::cli
