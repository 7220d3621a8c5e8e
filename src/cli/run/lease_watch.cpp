#include "cli/run/lease_watch.h"

#include "base/text.h"

#include <utility>

namespace gpurota::cli {
namespace {

// Short enough that a daemon's restart is hardly noticed, long enough to cost nothing.
constexpr std::chrono::milliseconds kRetry{250};
// Short, because signals wait to be passed on while LeaseWatch tries to reconnect.
constexpr std::chrono::milliseconds kReconnectTimeout{100};

}  // namespace

Result<void> LeaseWatch::begin() {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, client::connect(location_));
  GPUROTA_TRY(connection.start_stream(proto::Hold{lease_}));
  connection_.emplace(std::move(connection));
  return {};
}

std::optional<LeaseWatch::Clock::time_point> LeaseWatch::retry_at() const {
  if (ended_ || connection_) return std::nullopt;
  return retry_at_;
}

std::string LeaseWatch::end_text() const {
  const std::string why = display_text(reason_, 300);
  const std::string what = why.starts_with("it ") ? why.substr(2)
                           : why.empty()          ? " has ended"
                                                  : " has ended: " + why;
  return to_string(lease_) + what + "; ending your program";
}

void LeaseWatch::take(const proto::Hold::Reply& reply) {
  ending_ = ending_ || reply.lease.state == proto::LeaseState::kEnding;
  if (reply.reason) reason_ = *reply.reason;
  if (reply.ended) ended_ = reply.ended;
  if (reply.left_behind) left_behind_ = static_cast<int>(*reply.left_behind);
  if (reply.notice && notices_.size() < 16) notices_.push_back(*reply.notice);
}

void LeaseWatch::step() {
  if (ended_) return;
  if (!connection_) {
    if (Clock::now() < retry_at_) return;
    retry_at_ = Clock::now() + kRetry;
    auto connection = client::connect(location_, kReconnectTimeout);
    if (!connection || !connection->start_stream(proto::Hold{lease_}, kReconnectTimeout)) return;
    connection_.emplace(std::move(*connection));
  }
  while (!ended_) {
    auto answer = connection_->next_answer<proto::Hold>();
    if (answer && !*answer) return;
    if (answer) {
      take((*answer)->reply);
      continue;
    }
    if (answer.error().code == Code::kNotFound) {
      // The lease may have ended between two connections. Then its command has ended, too, or we
      // have to end it.
      ended_ = ending_ ? proto::Ended::kReleased : proto::Ended::kLost;
      forgotten_ = true;
      if (reason_.empty()) reason_ = "gpurotad no longer knows it";
    }
    connection_.reset();
    retry_at_ = Clock::now() + kRetry;
    return;
  }
  connection_.reset();
}

}  // namespace gpurota::cli
