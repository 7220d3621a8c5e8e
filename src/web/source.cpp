#include "web/source.h"

namespace gpurota::web {

Result<Snapshot> Source::ask() {
  if (!connection_) {
    GPUROTA_ASSIGN_OR_RETURN(connection_, client::connect(location_, kPatience));
  }
  Snapshot snapshot;
  GPUROTA_ASSIGN_OR_RETURN(snapshot.info, connection_->call(proto::GetInfo{}, kPatience));
  GPUROTA_ASSIGN_OR_RETURN(snapshot.status, connection_->call(proto::Status{}, kPatience));
  GPUROTA_ASSIGN_OR_RETURN(snapshot.queue, connection_->call(proto::ListRequests{}, kPatience));
  GPUROTA_ASSIGN_OR_RETURN(snapshot.health, connection_->call(proto::Health{}, kPatience));
  // Of a daemon that knows no turns the rest is told all the same.
  if (auto turns = connection_->call(proto::ListTurns{}, kPatience)) {
    snapshot.turns = std::move(*turns);
  }
  return snapshot;
}

std::optional<Snapshot> Source::get() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (asked_ && now - *asked_ < kAge) return last_;
  const bool reused = connection_.has_value();
  Result<Snapshot> snapshot = ask();
  if (!snapshot && reused) {
    // The daemon may have been restarted since.
    connection_.reset();
    snapshot = ask();
  }
  if (!snapshot) connection_.reset();
  asked_ = std::chrono::steady_clock::now();
  last_ = snapshot ? std::optional(std::move(*snapshot)) : std::nullopt;
  return last_;
}

}  // namespace gpurota::web
