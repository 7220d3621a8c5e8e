#include "client/connection.h"

#include "ipc/unix_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace gpurota::client {
namespace {

// A daemon that closes the connection each time is not being restarted.
constexpr int kTries = 3;
// `native`: ECONNRESET or EPIPE if the daemon has not read what was sent.
tl::unexpected<Error> hung_up(int native = 0) {
  return fail(Code::kGone,
              "gpurotad closed the connection before it answered: it was stopped, or "
              "this user has too many connections. Try again",
              native);
}

}  // namespace

Result<Connection> Connection::open(const std::string& socket, milliseconds timeout) {
  GPUROTA_ASSIGN_OR_RETURN(Fd fd, ipc::connect_unix(socket, SOCK_STREAM, timeout));
  GPUROTA_TRY(ipc::set_blocking(fd.get(), false));
  return Connection(socket, std::move(fd));
}

Result<void> Connection::come_back(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  GPUROTA_ASSIGN_OR_RETURN(Connection next, open(socket_, std::min(left, kConnectTimeout)));
  *this = std::move(next);
  return {};
}

Result<void> Connection::wait(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd entry{fd_.get(), events, 0};
    const int ready = ::poll(&entry, 1, left.count() < 0 ? 0 : static_cast<int>(left.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail_errno("cannot wait for gpurotad", errno);
    if (ready == 0) {
      return fail(
          Code::kTimeout,
          "gpurotad did not answer in time: it may be starting, stopped, or waiting for its disk. "
          "Its log says more: journalctl -u gpurotad");
    }
  }
}

Result<void> Connection::send(std::string json, Clock::time_point deadline) {
  if (json.size() > proto::kMaxCallBytes) {
    return fail(Code::kLimit,
                fmt::format("this is too long to be sent to gpurotad ({} KiB of {}): shorten the "
                            "command, or the variables",
                            json.size() / 1024, proto::kMaxCallBytes / 1024));
  }
  json.push_back('\0');
  std::string_view rest = json;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      GPUROTA_TRY(wait(POLLOUT, deadline));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return hung_up(errno);
    } else if (errno != EINTR) {
      return fail_errno("cannot send to gpurotad", errno);
    }
  }
  return {};
}

Result<bool> Connection::fill() {
  char buffer[16384];
  for (;;) {
    const ssize_t received = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (received == 0) return hung_up();
    if (received > 0) {
      GPUROTA_TRY(framer_.feed({buffer, static_cast<std::size_t>(received)}));
      return true;
    }
    if (errno == EAGAIN) return false;
    if (errno == ECONNRESET) return hung_up(errno);
    if (errno != EINTR) return fail_errno("cannot read from gpurotad", errno);
  }
}

Result<std::string> Connection::receive(Clock::time_point deadline) {
  for (;;) {
    if (auto message = framer_.next()) return std::move(*message);
    GPUROTA_ASSIGN_OR_RETURN(const bool some, fill());
    if (!some) GPUROTA_TRY(wait(POLLIN, deadline));
  }
}

Result<std::string> Connection::ask(const std::string& json, bool read_only,
                                    Clock::time_point deadline) {
  for (int tries = 1;; ++tries) {
    // A daemon that refuses a client sends the reason and closes the connection before it reads the
    // call, so the reason is read even if send() failed.
    const auto sent = send(json, deadline);
    if (!sent && sent.error().code != Code::kGone) return tl::unexpected(sent.error());
    auto text = receive(deadline);
    if (text || text.error().code != Code::kGone) return text;
    const bool unread = !sent || text.error().native != 0;
    if (bound_ || tries == kTries || !(read_only || unread) || !come_back(deadline)) return text;
  }
}

template <class Method>
Result<typename Method::Reply> Connection::call(const Method& params, milliseconds timeout) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string text, ask(proto::call_json(params), Method::kReadOnly,
                                                       Clock::now() + timeout));
  bound_ |= !Method::kReadOnly;
  auto answer = proto::parse_reply<Method>(text);
  if (!answer) return tl::unexpected(proto::to_error(answer.error()));
  return std::move(answer->reply);
}

Result<std::string> Connection::forward(const std::string& json, bool read_only,
                                        milliseconds timeout) {
  bound_ |= !read_only;
  return ask(json, read_only, Clock::now() + timeout);
}

template <class Method>
Result<void> Connection::start_stream(const Method& params, milliseconds timeout) {
  bound_ = true;
  auto sent = send(proto::call_json(params, true), Clock::now() + timeout);
  if (!sent && sent.error().code == Code::kGone) return {};  // next_answer() says why
  return sent;
}

template <class Method>
Result<std::optional<proto::Answer<Method>>> Connection::next_answer() {
  std::optional<std::string> text = framer_.next();
  while (!text) {
    GPUROTA_ASSIGN_OR_RETURN(const bool some, fill());
    if (!some) return std::optional<proto::Answer<Method>>();
    text = framer_.next();
  }
  auto answer = proto::parse_reply<Method>(*text);
  if (!answer) return tl::unexpected(proto::to_error(answer.error()));
  return std::optional(std::move(*answer));
}

#define GPUROTA_INSTANTIATE(M) \
  template Result<proto::M::Reply> Connection::call(const proto::M&, milliseconds);
GPUROTA_FOR_EACH_METHOD(GPUROTA_INSTANTIATE)
template Result<void> Connection::start_stream(const proto::Hold&, milliseconds);
template Result<void> Connection::start_stream(const proto::Events&, milliseconds);
template Result<std::optional<proto::Answer<proto::Events>>> Connection::next_answer();
template Result<std::optional<proto::Answer<proto::Hold>>> Connection::next_answer();
template Result<void> Connection::start_stream(const proto::Enqueue&, milliseconds);
template Result<std::optional<proto::Answer<proto::Enqueue>>> Connection::next_answer();
template Result<void> Connection::start_stream(const proto::TestNotice&, milliseconds);
template Result<void> Connection::start_stream(const proto::ServeWeb&, milliseconds);
template Result<std::optional<proto::Answer<proto::ServeWeb>>> Connection::next_answer();
template Result<void> Connection::start_stream(const proto::SignInByProxy&, milliseconds);
template Result<std::optional<proto::Answer<proto::SignInByProxy>>> Connection::next_answer();
template Result<std::optional<proto::Answer<proto::TestNotice>>> Connection::next_answer();

}  // namespace gpurota::client
