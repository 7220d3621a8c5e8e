// Writes events of pods (events.k8s.io as core/v1) to the API server, as far as it takes them: what it does not take is not tried again,
// as an event that is late helps nobody. State thread.
#pragma once

#include "core/time.h"
#include "kube/dra/api_client.h"
#include "kube/dra/pod_events.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::kube {

// The object, of a name that nobody else has: the pod's and `suffix`, as kubelet names its own. Pure.
std::string event_json(const PodEvent& event, const std::string& node, WallTime now,
                       std::string_view suffix);

class EventWriter {
 public:
  // `loop` outlives it.
  EventWriter(ports::EventLoop& loop, std::shared_ptr<ApiClient> api, std::string node);

  void write(const std::vector<PodEvent>& events);

 private:
  void on_written(const Result<ApiAnswer>& answer);

  const std::shared_ptr<ApiClient> api_;
  const std::string node_;
  bool is_refused_ = false;
  sys::Worker worker_;  // ends first
};

}  // namespace gpurota::kube
