#include "kube/api/event_writer.h"

#include "base/log.h"
#include "kube/api/json_internal.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace gpurota::kube {
namespace {

constexpr std::chrono::milliseconds kEventPatience{5000};
// Events that wait while the API server is away; further ones are dropped.
constexpr std::size_t kMostWaiting = 32;

}  // namespace

std::string event_json(const PodEvent& event, const EventSource& source, WallTime now,
                       std::string_view suffix) {
  constexpr std::size_t kLongestName = 253, kLongestMessage = 1024;
  const std::string name = event.pod.name.substr(0, kLongestName - 1 - suffix.size());
  const std::string time = proto::format_time(now);
  Json json = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", fmt::format("{}.{}", name, suffix)}, {"namespace", event.pod.space}}},
      {"involvedObject",
       {{"apiVersion", event.pod.is_claim ? "resource.k8s.io/v1" : "v1"},
        {"kind", event.pod.is_claim ? "ResourceClaim" : "Pod"},
        {"namespace", event.pod.space},
        {"name", event.pod.name},
        {"uid", event.pod.uid}}},
      {"reason", event.reason},
      {"message", text_of(event.message, kLongestMessage)},
      {"type", event.is_warning ? "Warning" : "Normal"},
      {"source", {{"component", source.program}, {"host", source.node}}},
      {"reportingComponent", source.program},
      {"reportingInstance", source.node},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1}};
  if (!event.pod.container.empty()) {
    // The form that kubelet uses in its own events.
    json["involvedObject"]["fieldPath"] = fmt::format("spec.containers{{{}}}", event.pod.container);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

EventWriter::EventWriter(ports::EventLoop& loop, std::shared_ptr<ApiClient> api, EventSource source)
    : api_(std::move(api)), source_(std::move(source)), worker_(loop, "events") {}

void EventWriter::write(const std::vector<PodEvent>& events) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  for (const PodEvent& event : events) {
    log::info(event.pod.is_claim ? "event of a claim" : "event of a pod",
              {{event.pod.is_claim ? "claim" : "pod", event.pod.space + "/" + event.pod.name},
               {"reason", event.reason},
               {"message", event.message}});
    if (worker_.unfinished() >= kMostWaiting) continue;
    const std::string suffix =
        fmt::format("{:x}", std::chrono::steady_clock::now().time_since_epoch().count());
    worker_.run(
        [api = api_, path = fmt::format("/api/v1/namespaces/{}/events", event.pod.space),
         body = event_json(event, source_, now, suffix)] {
          return api->call("POST", path, body, kEventPatience);
        },
        [this](const Result<ApiAnswer>& answer) { on_written(answer); });
  }
}

void EventWriter::on_written(const Result<ApiAnswer>& answer) {
  const bool good = answer && answer->good();
  if (good || is_refused_) {
    is_refused_ = !good;
    return;
  }
  is_refused_ = true;
  log::warn(
      "events of pods cannot be written",
      {{"error", answer ? error_of(*answer, "write an event").message : answer.error().message}});
}

}  // namespace gpurota::kube
