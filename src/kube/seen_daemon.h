// The daemon's last answer, and for how long it has been away. State thread only.
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
  // An error: it is away, what was heard before stands, and this is false.
  bool hear(Result<DaemonView> view, TimePoint now);

  // Whether it has ever been heard; only then is there a view.
  explicit operator bool() const { return view_.has_value(); }
  const DaemonView* operator->() const { return &*view_; }
  const DaemonView& operator*() const { return *view_; }
  // Whether the daemon has not answered for so long that the state of its GPUs is unknown, whether
  // it has disconnected or just does not answer.
  bool is_away(TimePoint now) const;
  // Its GPUs, none of them in service while it is away; only if it has ever been heard.
  std::vector<NodeGpu> gpus(TimePoint now) const;

 private:
  std::optional<DaemonView> view_;
  TimePoint heard_{};
};

}  // namespace gpurota::kube
