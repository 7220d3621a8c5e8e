#include "kube/daemon_link.h"

#include "base/log.h"

#include <utility>

namespace gpurota::kube {

void DaemonLink::poll(std::vector<LeaseId> whose, std::function<void(Result<DaemonView>)> heard) {
  if (poller_.unfinished() > 0) return;
  poller_.run(
      [location = location_, root = host_root_, whose = std::move(whose)] {
        return read_daemon(location, root, whose);
      },
      [this, heard = std::move(heard)](Result<DaemonView> view) {
        if (std::exchange(is_away_, !view) != !view) {
          if (view) {
            log::info("gpurotad answers");
          } else {
            log::warn("gpurotad does not answer, trying again", {{"error", view.error().message}});
          }
        }
        heard(std::move(view));
      });
}

void DaemonLink::end_lease_on(sys::Worker& worker, const LeaseEnding& ending,
                              const char* whose) const {
  log::info(std::string("the lease of ") + whose + " ends",
            {{"lease", to_string(ending.lease)}, {"reason", ending.why}});
  worker.run(
      [location = location_, ending] { return end_lease(location, ending.lease, ending.why); },
      [ending](const Result<void>& ended) {
        if (ended) return;
        log::warn("a lease cannot be ended, trying again",
                  {{"lease", to_string(ending.lease)}, {"error", ended.error().message}});
      });
}

}  // namespace gpurota::kube
