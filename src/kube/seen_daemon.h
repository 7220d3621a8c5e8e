// The daemon's last answer, and how long ago it was. State thread only.
#pragma once

#include "base/result.h"
#include "core/time.h"
#include "kube/node_leases.h"
#include "kube/offer.h"

#include <optional>
#include <vector>

namespace gpurota::kube {

class SeenDaemon {
 public:
  // Takes an answer. False after an error: the daemon is away, and the last view stays.
  bool hear(Result<DaemonView> view, TimePoint now);

  // Whether the daemon has ever answered; only then is there a view.
  explicit operator bool() const { return view_.has_value(); }
  const DaemonView* operator->() const { return &*view_; }
  const DaemonView& operator*() const { return *view_; }
  // Whether the daemon, connected or not, has not answered for so long that the state of its GPUs
  // is unknown.
  bool is_away(TimePoint now) const;
  // The daemon's GPUs; none of them is in service while the daemon is away. The daemon must have
  // answered at least once.
  std::vector<NodeGpu> gpus(TimePoint now) const;

 private:
  std::optional<DaemonView> view_;
  TimePoint heard_{};
};

}  // namespace gpurota::kube
