#include "cli/queue/waiting.h"

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/text/done_text.h"
#include "cli/text/output.h"
#include "cli/text/share_text.h"
#include "cli/text/time_text.h"
#include "client/reason_text.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Short enough that users hardly notice a restart of the daemon, long enough to cost nothing.
constexpr milliseconds kReconnectEvery{250};
// systemd accepts connections for a daemon that is starting. A wait longer than a restart is
// reported to the user.
constexpr milliseconds kSilence{3000};

// The number of attempts if the daemon closes the connection before it answers.
constexpr int kTries = 4;
// The longest wait for the answer to Acquire: a filler may have to leave first and free its memory.
constexpr milliseconds kPatience{120000};

std::string new_ticket() {
  std::random_device random;
  std::string ticket;
  for (int i = 0; i < 4; ++i) ticket += fmt::format("{:08x}", random());
  return ticket;
}

// The wishes that decide about GPUs and time; options that only name the lease are left out.
proto::LeaseRequest request_of(const LeaseWishes& wishes) {
  proto::LeaseRequest request;
  request.gpus = wishes.gpus;
  if (!wishes.gpu_ids.empty()) request.gpu_ids = wishes.gpu_ids;
  request.memory = wishes.memory;
  request.soft_limit = wishes.soft_limit;
  if (wishes.swap) request.swap = true;
  if (wishes.oversize) request.oversize = true;
  request.priority = wishes.priority;
  request.quantum = wishes.quantum;
  if (wishes.latency) request.latency = to_string(*wishes.latency);
  request.compute_percent = wishes.compute;
  request.compute_max_percent = wishes.compute_max;
  if (wishes.warning && wishes.warning->is_set()) set_warning(request, *wishes.warning);
  if (wishes.lasts) request.seconds = wishes.lasts->count();
  request.gpu_type = wishes.gpu_type;
  request.gpu_class = wishes.gpu_class;
  request.min_memory_bytes = wishes.min_memory;
  request.min_cc = wishes.min_cc;
  request.near = wishes.near;
  return request;
}

proto::LeaseRequest request_of(const Wanted& wanted) {
  const LeaseWishes& wishes = wanted.wishes;
  proto::LeaseRequest request = request_of(wishes);
  request.kind = wanted.kind;
  request.inside = wanted.inside;
  request.unreserved_threshold = wishes.memory_threshold;
  if (wanted.take_over) request.take_over = true;
  request.note = sendable(wishes.note, "the note", proto::kMaxNoteBytes);
  request.name = wishes.name;
  request.as_name = sendable(wishes.as_name, "the name", proto::kMaxNameBytes);
  if (!wanted.command.empty()) request.command = wanted.command;
  return request;
}

class Waiter {
 public:
  Waiter(const client::Location& location, client::Connection& connection, proto::Enqueue request,
         const Wanted& wanted)
      : location_(location),
        connection_(connection),
        request_(std::move(request)),
        wanted_(wanted) {
    if (wanted.wishes.wait) {
      longest_ = *wanted.wishes.wait;
      until_ = begun_ + longest_;
    }
  }

  bool cancelled() const { return cancelled_; }
  // Nothing: there was no wait.
  std::optional<std::chrono::seconds> waited() const {
    if (!waiting_) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun_);
  }

  Result<proto::Acquire::Reply> wait() {
    GPUROTA_TRY(connection_.start_stream(request_));
    for (;;) {
      auto answer = connection_.next_answer<proto::Enqueue>();
      // kGone is a closed connection; the daemon's refusals have other codes. A daemon that closes
      // every connection (too many connections) is tried only a few times.
      if (!answer && answer.error().code == Code::kGone && (waiting_ || ++hung_up_ < kTries)) {
        GPUROTA_TRY(come_back());
        continue;
      }
      if (!answer) {
        cancelled_ = waiting_ && answer.error().code == Code::kNotFound;
        return tl::unexpected(answer.error());
      }
      if (*answer) {
        heard_ = true;
        proto::Enqueue::Reply& reply = (*answer)->reply;
        if (reply.lease) return taken(reply);
        if (reply.request) show(*reply.request);
        continue;
      }
      if (is_over()) return gave_up();
      pollfd polled{connection_.fd(), POLLIN, 0};
      if (::poll(&polled, 1, time_left()) == 0) say_silent();
    }
  }

 private:
  static proto::Acquire::Reply taken(proto::Enqueue::Reply& reply) {
    return {std::move(*reply.lease), std::move(reply.environment), std::move(reply.preload)};
  }
  bool is_over() const { return until_ && Clock::now() >= *until_; }
  int time_left() const {
    if (!until_) return heard_ ? -1 : static_cast<int>(kSilence.count());
    const auto left = std::chrono::ceil<milliseconds>(*until_ - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, heard_ ? 60000 : kSilence.count()));
  }
  // Prints once that the daemon does not answer.
  void say_silent() {
    if (std::exchange(heard_, true) || wanted_.quiet) return;
    complain("gpurotad does not answer yet: it may be starting; waiting for it");
  }
  tl::unexpected<Error> gave_up() const {
    return fail(Code::kNoGpu,
                fmt::format("gave up after {}: {}", duration_text(longest_), reason_));
  }

  void show(const proto::Request& request) {
    const bool is_first = !waiting_;
    if (is_first) show_own_reservation(request);
    waiting_ = true;
    // Compares the text without the remedy, which may change with every minute that passes. The
    // remedy is printed only when the rest has changed.
    std::string text = waiting_text(request, now(), false);
    if (text == shown_) return;
    shown_ = text;
    reason_ = client::reason_text(request, now());
    if (!wanted_.quiet) complain("waiting as " + waiting_text(request, now(), true));
  }

  // If the request may be waiting for a reservation of the same user, prints how to use that
  // reservation.
  void show_own_reservation(const proto::Request& request) const {
    if (wanted_.quiet || request.kind != proto::LeaseKind::kRun) return;
    auto connection = client::connect(location_, kReconnectEvery);
    const auto status = connection
                            ? connection->call(proto::Status{})
                            : Result<proto::Status::Reply>(tl::unexpected(connection.error()));
    const std::string text = status ? own_reservation_text(request, status->leases) : "";
    if (!text.empty()) complain(text);
  }

  // Waits until there is a daemon again.
  Result<void> come_back() {
    if (waiting_) {
      complain("gpurotad has gone away; waiting for it to come back");
    } else {
      std::this_thread::sleep_for(kReconnectEvery);
    }
    shown_.clear();
    for (;;) {
      auto connection = client::connect(location_, kReconnectEvery);
      if (connection && connection->start_stream(request_)) {
        connection_ = std::move(*connection);
        return {};
      }
      if (is_over()) return gave_up();
      std::this_thread::sleep_for(kReconnectEvery);
    }
  }

  const client::Location& location_;
  client::Connection& connection_;
  proto::Enqueue request_;
  const Wanted& wanted_;
  const Clock::time_point begun_ = Clock::now();
  std::chrono::seconds longest_{};
  std::optional<Clock::time_point> until_;
  bool waiting_ = false, cancelled_ = false;
  bool heard_ = false;  // true: an answer came, or the silence was reported
  int hung_up_ = 0;     // connections closed before the first answer
  std::string shown_, reason_ = "gpurotad has not answered";
};

}  // namespace

std::optional<std::string> sendable(const std::optional<std::string>& given, const char* what,
                                    std::size_t most) {
  if (!given) return std::nullopt;
  std::string text = valid_utf8(*given);
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  complain(fmt::format("{} is longer than {} bytes and is cut off", what, most));
  return text.substr(0, end);
}

std::string own_reservation_text(const proto::Request& request,
                                 const std::vector<proto::Lease>& leases) {
  const auto wanted = [&request](const proto::LeaseGpu& gpu) {
    if (request.gpu_ids) {
      return std::find(request.gpu_ids->begin(), request.gpu_ids->end(), gpu.uuid) !=
             request.gpu_ids->end();
    }
    return request.planned.empty() || std::find(request.planned.begin(), request.planned.end(),
                                                gpu.index) != request.planned.end();
  };
  for (const proto::Lease& lease : leases) {
    if (lease.kind != proto::LeaseKind::kReservation || lease.uid != request.uid) continue;
    if (lease.as_name != request.as_name || lease.state == proto::LeaseState::kEnding) continue;
    if (std::none_of(lease.gpus.begin(), lease.gpus.end(), wanted)) continue;
    return fmt::format("You hold {0} on {1}: gpurota run --lease {0} -- …",
                       to_string(lease.lease_id), gpus_text(lease));
  }
  return {};
}

std::string waiting_text(const proto::Request& request, WallTime now, bool remedy) {
  std::string text = fmt::format(
      "{}, position {}: {}", to_string(request.request_id), request.position,
      remedy ? client::reason_with_remedy(request, now) : client::reason_text(request, now));
  if (const std::string place = place_text(request); !place.empty()) text += "; " + place;
  return text;
}

proto::LeaseRequest lease_request(const LeaseWishes& wishes, const char* kind) {
  return request_of(Wanted{wishes, kind, {}});
}

proto::CheckRequest check_request(const LeaseWishes& wishes) {
  return {.request = request_of(wishes)};
}

tl::expected<proto::Acquire::Reply, NoLease> obtain(const client::Location& location,
                                                    client::Connection& connection,
                                                    const Wanted& wanted) {
  std::optional<std::chrono::seconds> waited;
  bool cancelled = false;
  const auto wait = [&] {
    const proto::Enqueue call{.ticket = new_ticket(), .request = request_of(wanted)};
    Waiter waiter(location, connection, call, wanted);
    auto reply = waiter.wait();
    waited = waiter.waited();
    cancelled = waiter.cancelled();
    return reply;
  };
  auto reply = wanted.wishes.nonblock
                   ? connection.call(proto::Acquire{request_of(wanted)}, kPatience)
                   : wait();
  if (!reply) return tl::unexpected(NoLease{reply.error(), cancelled});
  // Prints nothing beside a command's output to a file or a pipe, unless the command had to wait.
  const bool watched = !wanted.command.empty() && ::isatty(STDERR_FILENO) != 0;
  if (!wanted.quiet && (waited || watched)) complain(got_text(reply->lease, waited));
  return std::move(*reply);
}

int shown_without_lease(const NoLease& why, int otherwise) {
  complain(display_lines(why.error.message));
  if (why.cancelled) return kExitCancelled;
  return why.error.code == Code::kNoGpu ? kExitNoGpu : otherwise;
}

}  // namespace gpurota::cli
