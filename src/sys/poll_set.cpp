#include "sys/poll_set.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>

namespace gpurota::sys {
namespace {

// A batch takes a few hundred microseconds; the loop's other sources wait that long.
constexpr int kBatch = 32;

}  // namespace

class PollSet::Handle final : public ports::EventLoop::Source {
 public:
  Handle(std::shared_ptr<State> state, int fd, std::uint64_t id)
      : state_(std::move(state)), fd_(fd), id_(id) {}
  ~Handle() override {
    (void)::epoll_ctl(state_->epoll.get(), EPOLL_CTL_DEL, fd_, nullptr);
    state_->watched.erase(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void set_writable(bool writable) override {
    if (std::exchange(writable_, writable) != writable) (void)apply(EPOLL_CTL_MOD);
  }
  void set_readable(bool readable) override {
    if (std::exchange(readable_, readable) != readable) (void)apply(EPOLL_CTL_MOD);
  }
  int apply(int operation) {
    epoll_event event{};
    event.events = (readable_ ? EPOLLIN : 0U) | (writable_ ? EPOLLOUT : 0U);
    event.data.u64 = id_;
    return ::epoll_ctl(state_->epoll.get(), operation, fd_, &event);
  }
  void begin_writable(bool writable) { writable_ = writable; }

 private:
  std::shared_ptr<State> state_;
  int fd_;
  std::uint64_t id_;
  bool readable_ = true;
  bool writable_ = false;
};

PollSet::PollSet(Fd epoll) : state_(std::make_shared<State>()) { state_->epoll = std::move(epoll); }

Result<std::unique_ptr<PollSet>> PollSet::make() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno("cannot make an epoll", errno);
  return std::unique_ptr<PollSet>(new PollSet(std::move(epoll)));
}

Result<ports::EventLoop::SourcePtr> PollSet::watch(int fd, bool writable,
                                                   std::function<void(unsigned)> callback) {
  const std::uint64_t id = ++state_->last_id;
  auto handle = std::make_unique<Handle>(state_, fd, id);
  handle->begin_writable(writable);
  if (handle->apply(EPOLL_CTL_ADD) != 0) {
    return fail_errno(fmt::format("cannot watch descriptor {}", fd), errno);
  }
  state_->watched.emplace(id, std::make_shared<Watched>(Watched{std::move(callback)}));
  return handle;
}

void PollSet::dispatch() {
  const std::shared_ptr<State> state = state_;
  std::array<epoll_event, kBatch> ready;
  const int count = ::epoll_wait(state->epoll.get(), ready.data(), kBatch, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    const auto it = state->watched.find(event.data.u64);
    if (it == state->watched.end()) continue;  // an earlier callback of the batch has removed it
    const std::shared_ptr<Watched> keep = it->second;
    keep->callback(event.events);
  }
}

}  // namespace gpurota::sys
