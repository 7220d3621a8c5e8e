#include "kube/seen_daemon.h"

#include <chrono>
#include <utility>

namespace gpurota::kube {
namespace {

// A restart of the daemon must not make the GPUs unavailable.
constexpr Duration kAwayPatience = std::chrono::seconds(30);

}  // namespace

bool SeenDaemon::hear(Result<DaemonView> view, TimePoint now) {
  if (!view) return false;
  heard_ = now;
  if (view_) keep_lost(view->node.gpus, view_->node.gpus);
  view_ = std::move(*view);
  return true;
}

bool SeenDaemon::is_away(TimePoint now) const { return now - heard_ > kAwayPatience; }

std::vector<NodeGpu> SeenDaemon::gpus(TimePoint now) const {
  std::vector<NodeGpu> gpus = view_->node.gpus;
  if (is_away(now)) {
    for (NodeGpu& gpu : gpus) gpu.in_service = false;
  }
  return gpus;
}

}  // namespace gpurota::kube
