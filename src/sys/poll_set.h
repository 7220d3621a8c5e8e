// Watches many descriptors by an epoll of its own, which the event loop watches as one source.
//
// For the connections of clients. sd-event asks the kernel for everything that is ready before each
// callback, so with a thousand ready connections each callback pays for a thousand. A PollSet takes
// a batch and serves it; descriptors left over come first in the next batch. Used by
// sd_event_loop.cpp on the loop's thread; sources may outlive the set.
#pragma once

#include "base/fd.h"
#include "ports/event_loop.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace gpurota::sys {

class PollSet {
 public:
  static Result<std::unique_ptr<PollSet>> make();

  // Like ports::EventLoop::watch_fd.
  Result<ports::EventLoop::SourcePtr> watch(int fd, bool writable,
                                            std::function<void(unsigned events)> callback);
  // Readable while one of the descriptors is ready.
  int fd() const { return state_->epoll.get(); }
  // Calls back for one batch of ready descriptors, in turn. More urgent sources of the loop wait
  // meanwhile.
  void dispatch();

 private:
  class Handle;
  struct Watched {
    std::function<void(unsigned)> callback;
  };
  struct State {
    Fd epoll;
    std::uint64_t last_id = 0;
    // By an id that is never reused: a ready descriptor may be gone when its turn comes.
    std::unordered_map<std::uint64_t, std::shared_ptr<Watched>> watched;
  };

  explicit PollSet(Fd epoll);

  std::shared_ptr<State> state_;
};

}  // namespace gpurota::sys
