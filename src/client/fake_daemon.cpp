#include "client/fake_daemon.h"

#include "ipc/paths.h"
#include "proto/service.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::client {
namespace {

proto::Lease first_lease() {
  proto::Lease lease;
  lease.lease_id = {1};
  lease.share = proto::Share::kSlice;
  lease.state = proto::LeaseState::kActive;
  lease.uid = ::getuid();
  lease.user = "tester";
  proto::LeaseGpu& gpu = lease.gpus.emplace_back();
  gpu.uuid = {"GPU-1"};
  gpu.limit_bytes = gib(8);
  return lease;
}

void send_all(int fd, std::string text) {
  text.push_back('\0');
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    pollfd writable{fd, POLLOUT, 0};
    if (sent < 0 && errno == EAGAIN && ::poll(&writable, 1, 5000) == 1) continue;
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

FakeDaemon::FakeDaemon(std::string runtime_dir)
    : runtime_dir_(std::move(runtime_dir)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  acquire_reply_.lease = first_lease();
  start_again();
  thread_ = std::thread([this] { serve(); });
}

FakeDaemon::~FakeDaemon() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake();
  thread_.join();
}

void FakeDaemon::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void FakeDaemon::on_call(Handler handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

void FakeDaemon::set_acquire_reply(proto::Acquire::Reply reply) {
  const std::lock_guard lock(mutex_);
  acquire_reply_ = std::move(reply);
}

void FakeDaemon::set_cgroup(std::optional<std::string> cgroup) {
  const std::lock_guard lock(mutex_);
  cgroup_ = std::move(cgroup);
}

void FakeDaemon::set_ends_with_command(bool ends) {
  const std::lock_guard lock(mutex_);
  ends_with_command_ = ends;
}

void FakeDaemon::end_lease(proto::Ended ended, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (command_pid_ > 0 && command_) (void)::kill(command_pid_, SIGTERM);
  finish(ended, reason);
}

void FakeDaemon::stop() {
  const std::lock_guard lock(mutex_);
  listener_.reset();
  peers_.clear();
  wake();
}

void FakeDaemon::start_again() {
  const std::lock_guard lock(mutex_);
  auto listener = ipc::Listener::make(ipc::control_socket(runtime_dir_),
                                      {.type = SOCK_STREAM, .mode = 0600, .group = std::nullopt});
  if (!listener) std::abort();
  listener_.emplace(std::move(*listener));
  wake();
}

bool FakeDaemon::wait_for(std::string_view method, int count) {
  std::unique_lock lock(mutex_);
  return called_.wait_for(lock, std::chrono::seconds(10), [&] {
    int seen = 0;
    for (const auto& [name, params] : calls_) seen += name == method ? 1 : 0;
    return seen >= count;
  });
}

std::vector<proto::Params> FakeDaemon::calls() const {
  const std::lock_guard lock(mutex_);
  std::vector<proto::Params> params;
  for (const auto& [name, value] : calls_) params.push_back(value);
  return params;
}

void FakeDaemon::serve() {
  for (;;) {
    std::vector<pollfd> polled;
    {
      const std::lock_guard lock(mutex_);
      if (quit_) return;
      polled.push_back({wake_.get(), POLLIN, 0});
      polled.push_back({listener_ ? listener_->fd() : -1, POLLIN, 0});
      polled.push_back({command_.get(), POLLIN, 0});
      for (const Peer& peer : peers_) polled.push_back({peer.fd.get(), POLLIN, 0});
    }
    (void)::poll(polled.data(), polled.size(), -1);
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    if (listener_) {
      auto peer = listener_->accept();
      if (peer && *peer) peers_.emplace_back().fd = std::move(**peer);
    }
    if (command_ && (polled[2].revents & POLLIN) != 0) {
      command_.reset();
      if (ends_with_command_) finish(proto::Ended::kFinished, "its command ended");
    }
    for (auto peer = peers_.begin(); peer != peers_.end();) {
      peer = read_from(*peer) ? std::next(peer) : peers_.erase(peer);
    }
  }
}

bool FakeDaemon::read_from(Peer& peer) {
  char buffer[4096];
  const ssize_t received = ::recv(peer.fd.get(), buffer, sizeof buffer, 0);
  if (received < 0) return errno == EAGAIN;
  if (received == 0 || !peer.framer.feed({buffer, static_cast<std::size_t>(received)}))
    return false;
  while (auto message = peer.framer.next()) {
    for (std::string& text : answer(*message, peer)) {
      if (text.empty()) return false;
      send_all(peer.fd.get(), std::move(text));
    }
  }
  called_.notify_all();
  return true;
}

std::vector<std::string> FakeDaemon::answer(const std::string& text, Peer& peer) {
  const auto call = proto::parse_call(text);
  if (!call) return {proto::error_json(call.error().error)};
  std::string method;
  std::visit([&]<class M>(const M&) { method = M::kMethod; }, call->params);
  calls_.emplace_back(method, call->params);
  if (handler_) {
    if (auto special = handler_(*call)) return {*special};
  }
  std::vector<std::string> answers = {default_answer(*call, peer)};
  // A holder that connects after the end gets the end at once.
  if (std::holds_alternative<proto::Hold>(call->params) && ended_) {
    answers = {proto::reply_json<proto::Hold>(*ended_)};
  }
  return answers;
}

std::string FakeDaemon::default_answer(const proto::Call& call, Peer& peer) {
  if (std::holds_alternative<proto::Acquire>(call.params)) {
    ended_.reset();
    return proto::reply_json<proto::Acquire>(acquire_reply_);
  }
  if (std::holds_alternative<proto::Enqueue>(call.params)) {
    ended_.reset();
    return proto::reply_json<proto::Enqueue>(
        {std::nullopt, acquire_reply_.lease, acquire_reply_.environment, acquire_reply_.preload});
  }
  if (const auto* start = std::get_if<proto::Start>(&call.params)) {
    command_pid_ = start->pid;
    command_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, start->pid, 0)));
    return proto::reply_json<proto::Start>({cgroup_});
  }
  if (std::holds_alternative<proto::Hold>(call.params)) {
    peer.holds = true;
    return proto::reply_json<proto::Hold>({acquire_reply_.lease, std::nullopt, std::nullopt}, true);
  }
  if (std::holds_alternative<proto::GetInfo>(call.params)) {
    return proto::reply_json<proto::GetInfo>({.version = std::string(proto::version()),
                                              .pid = ::getpid(),
                                              .uid = ::getuid(),
                                              .tenant_socket = runtime_dir_ + "/tenant.sock",
                                              .driver_version = "580.65",
                                              .gpus = 1});
  }
  if (std::holds_alternative<proto::ServiceInfo>(call.params)) {
    return proto::reply_json<proto::ServiceInfo>(proto::service_info());
  }
  return proto::error_json(proto::wire_error({Code::kUnavailable, 0, "the fake cannot do that"}));
}

void FakeDaemon::tell_holders(const proto::Hold::Reply& reply, bool continues) {
  for (Peer& peer : peers_) {
    if (peer.holds) send_all(peer.fd.get(), proto::reply_json<proto::Hold>(reply, continues));
    if (!continues) peer.holds = false;
  }
}

void FakeDaemon::finish(proto::Ended ended, const std::string& reason) {
  if (ended_) return;  // its command ends then, too
  ended_ = {acquire_reply_.lease, ended, reason};
  tell_holders(*ended_, false);
}

}  // namespace gpurota::client
