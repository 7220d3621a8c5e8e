#include "daemon/users/dispatcher.h"

#include <cerrno>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace gpurota::daemon {

Result<void> WakeUp::start(ports::EventLoop& loop, std::function<void()> callback) {
  event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) return fail_errno("cannot make an eventfd", errno);
  GPUROTA_ASSIGN_OR_RETURN(
      source_, loop.watch_fd(event_.get(), false, ports::Urgency::kClient,
                             [callback = std::move(callback)](unsigned) { callback(); }));
  return {};
}

void WakeUp::raise() {
  const std::uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

void WakeUp::lower() {
  std::uint64_t count = 0;
  (void)!::read(event_.get(), &count, sizeof count);
}

}  // namespace gpurota::daemon
