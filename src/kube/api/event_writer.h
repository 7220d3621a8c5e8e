// Writes events about pods and claims to the API server, as Events of core/v1 and not of
// events.k8s.io. An event that the server does not accept is dropped, because a late event helps
// nobody. State thread.
#pragma once

#include "core/time.h"
#include "kube/api/api_client.h"
#include "kube/api/pod_events.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::kube {

// The source of the events.
struct EventSource {
  std::string program, node;
};

// The event object. Its name is unique: the pod's name and `suffix`, in kubelet's form. Pure.
std::string event_json(const PodEvent& event, const EventSource& source, WallTime now,
                       std::string_view suffix);

class EventWriter {
 public:
  // `loop` must outlive it.
  EventWriter(ports::EventLoop& loop, std::shared_ptr<ApiClient> api, EventSource source);

  void write(const std::vector<PodEvent>& events);

 private:
  void on_written(const Result<ApiAnswer>& answer);

  const std::shared_ptr<ApiClient> api_;
  const EventSource source_;
  bool is_refused_ = false;
  sys::Worker worker_;  // destroyed first
};

}  // namespace gpurota::kube
