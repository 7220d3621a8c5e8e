#include "kube/folder_watch.h"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/inotify.h>
#include <unistd.h>

namespace gpurota::kube {

Result<FolderWatch> FolderWatch::make(ports::EventLoop& loop, const std::string& folder,
                                      std::function<void()> changed) {
  FolderWatch watch;
  watch.fd_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.fd_) return fail_errno("cannot watch folders", errno);
  constexpr unsigned kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR;
  if (::inotify_add_watch(watch.fd_.get(), folder.c_str(), kEvents) < 0) {
    return fail_errno("cannot watch " + folder, errno);
  }
  GPUROTA_ASSIGN_OR_RETURN(
      watch.source_, loop.watch_fd(watch.fd_.get(), false, ports::Urgency::kClient,
                                   [fd = watch.fd_.get(), changed = std::move(changed)](unsigned) {
                                     // Read all events: otherwise one change would trigger several
                                     // calls.
                                     std::array<char, 4096> events;
                                     while (::read(fd, events.data(), events.size()) > 0) {
                                     }
                                     changed();
                                   }));
  return watch;
}

}  // namespace gpurota::kube
