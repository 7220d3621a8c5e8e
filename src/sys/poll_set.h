// Many descriptors behind one: an epoll of their own, which the event loop watches as one source.
//
// For the connections of clients. sd-event asks the kernel for everything that is ready before each
// single callback, so that with a thousand ready connections each callback pays for a thousand.
// Here a batch is taken and served; those left over are first in the next. Used by
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

  // As ports::EventLoop::watch_fd.
  Result<ports::EventLoop::SourcePtr> watch(int fd, bool writable,
                                            std::function<void(unsigned events)> callback);
  // Ready while one of the descriptors is.
  int fd() const { return state_->epoll.get(); }
  // Calls back for some of those that are ready, in turn. More urgent sources of the loop wait so
  // long.
  void dispatch();

 private:
  class Handle;
  struct Watched {
    std::function<void(unsigned)> callback;
  };
  struct State {
    Fd epoll;
    std::uint64_t last_id = 0;
    // By a number that is never used again: what is ready may be gone when its turn comes.
    std::unordered_map<std::uint64_t, std::shared_ptr<Watched>> watched;
  };

  explicit PollSet(Fd epoll);

  std::shared_ptr<State> state_;
};

}  // namespace gpurota::sys
