#include "web/source.h"

#include <algorithm>

namespace gpurota::web {
namespace {

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace

Result<Snapshot> Source::ask() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto left = [until] {
    const auto rest = until - std::chrono::steady_clock::now();
    return std::max(std::chrono::ceil<std::chrono::milliseconds>(rest),
                    std::chrono::milliseconds(1));
  };
  if (!connection_) {
    GPUROTA_ASSIGN_OR_RETURN(connection_, client::connect(location_, left()));
  }
  Snapshot snapshot;
  GPUROTA_ASSIGN_OR_RETURN(snapshot.info, connection_->call(proto::GetInfo{}, left()));
  GPUROTA_ASSIGN_OR_RETURN(snapshot.status, connection_->call(proto::Status{}, left()));
  GPUROTA_ASSIGN_OR_RETURN(snapshot.queue, connection_->call(proto::ListRequests{}, left()));
  GPUROTA_ASSIGN_OR_RETURN(snapshot.health, connection_->call(proto::Health{}, left()));
  // A daemon that does not know ListTurns still gives the rest.
  if (auto turns = connection_->call(proto::ListTurns{}, left())) {
    snapshot.turns = std::move(*turns);
  } else if (turns.error().code == Code::kTimeout) {
    return tl::unexpected(
        std::move(turns).error());  // disconnect, so that a late answer never reaches a later call
  }
  return snapshot;
}

std::optional<Snapshot> Source::get() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (asked_ && now - *asked_ < kAge) return last_;
  const bool reused = connection_.has_value();
  Result<Snapshot> snapshot = ask();
  if (!snapshot && reused && snapshot.error().code != Code::kTimeout) {
    // The daemon may have restarted: connect again. Not after a timeout, because a daemon that
    // hangs would hang again.
    connection_.reset();
    snapshot = ask();
  }
  if (!snapshot) connection_.reset();
  asked_ = std::chrono::steady_clock::now();
  last_ = snapshot ? std::optional(std::move(*snapshot)) : std::nullopt;
  return last_;
}

template <class Method>
Result<typename Method::Reply> Source::call(const Method& params) {
  const std::lock_guard lock(mutex_);
  for (const bool reused : {connection_.has_value(), false}) {
    if (!connection_) {
      GPUROTA_ASSIGN_OR_RETURN(connection_, client::connect(location_, kPatience));
    }
    auto reply = connection_->call(params, kPatience);
    if (reply) return reply;
    const Code code = reply.error().code;
    if (code == Code::kTimeout || code == Code::kGone) connection_.reset();
    if (!reused || code != Code::kGone) return reply;
  }
  return fail(Code::kGone, "the daemon does not answer");
}

Result<proto::History::Reply> Source::history(std::chrono::seconds since) {
  proto::History method;
  method.since = wall_now() - since;
  return call(method);
}

Result<proto::Report::Reply> Source::report(std::chrono::seconds since, const char* by) {
  proto::Report method;
  method.since = wall_now() - since;
  method.by = by;
  return call(method);
}

Result<proto::Events::Reply> Source::events(std::chrono::seconds since) {
  proto::Events method;
  method.since = wall_now() - since;
  return call(method);
}

}  // namespace gpurota::web
