#include "kube/agent.h"

#include "base/log.h"
#include "kube/endpoint.h"
#include "kube/machine.h"
#include "kube/pod_groups.h"

#include <utility>

namespace gpurota::kube {
namespace {

constexpr const char* kPluginProgram = "gpurota-device-plugin";
constexpr std::chrono::milliseconds kListPatience{5000};

}  // namespace

Agent::Agent(ports::EventLoop& loop, const Options& options, client::Location daemon, Node node)
    : loop_(loop),
      options_(options),
      daemon_(std::move(daemon)),
      plugins_dir_(options.kubelet_dir + "/device-plugins"),
      node_(std::move(node)),
      questions_(loop),
      pods_(loop, "pods"),
      sockets_(loop, "sockets"),
      leases_(loop, "leases"),
      link_(loop, daemon_, options_.host_root) {
  for (const auto& [resource, name] : options_.names) {
    endpoints_.push_back(
        std::make_unique<Endpoint>(Endpoint::Parts{loop_, node_, questions_, sockets_, daemon_,
                                                   plugins_dir_, [this] { settle(); }},
                                   resource, name));
  }
  if (!options_.api) return;
  event_writer_ = std::make_unique<EventWriter>(
      loop_, std::make_shared<ApiClient>(options_.api->access, kPluginProgram),
      EventSource{kPluginProgram, options_.api->node});
}

Agent::~Agent() = default;

Result<void> Agent::start() {
  tick();
  return {};
}

void Agent::stop() { questions_.end(); }

void Agent::arm() {
  timer_ = loop_.add_timer(loop_.now() + options_.interval, ports::Urgency::kHousekeeping,
                           [this] { tick(); });
}

void Agent::tick() {
  arm();
  watch_folder();
  poll_daemon();
  poll_pods();
  settle();
  for (const auto& endpoint : endpoints_) endpoint->check();
}

// If kubelet is not running yet, its folder may not exist: then this fails, and the next tick tries
// again.
void Agent::watch_folder() {
  if (watch_) return;
  auto watch = FolderWatch::make(loop_, plugins_dir_, [this] {
    for (const auto& endpoint : endpoints_) endpoint->check();
  });
  if (watch) watch_.emplace(std::move(*watch));
}

void Agent::poll_daemon() {
  link_.poll(node_.leases_of_unknown_pods(), [this](Result<DaemonView> view) {
    const bool first = !node_.knows_gpus();
    const bool is_there = view.has_value();
    node_.on_daemon(std::move(view));
    if (event_writer_ && is_there) event_writer_->write(events_.observe(node_.pods(), loop_.now()));
    settle();
    if (!first) return;
    for (const auto& endpoint : endpoints_) endpoint->check();
  });
}

void Agent::poll_pods() {
  if (pods_.unfinished() > 0) return;
  const std::string socket = options_.kubelet_dir + "/pod-resources/kubelet.sock";
  pods_.run([socket] { return read_pod_devices(socket, kListPatience); },
            [this, asked = loop_.now()](const Result<std::vector<PodDevices>>& list) {
              if (std::exchange(pods_are_unknown_, !list) != !list && !list) {
                log::warn("kubelet does not say which pods have devices, trying again",
                          {{"error", list.error().message}});
              }
              if (!list) return;
              node_.on_pods(*list, asked);
              find_living();
              read_groups();
              settle();
            });
}

void Agent::find_living() {
  auto tokens = node_.missing_tokens();
  if (tokens.empty() || leases_.unfinished() > 0) return;
  leases_.run([tokens] { return read_living_tokens(tokens, "/proc"); },
              [this, tokens](const Result<std::set<std::string>>& living) {
                if (!living) {
                  return log::warn("cannot tell which containers are gone, trying again",
                                   {{"error", living.error().message}});
                }
                node_.on_living(tokens, *living);
                settle();
              });
}

void Agent::read_groups() {
  if (!node_.wants_pod_groups()) return;
  pods_.run([root = options_.host_root] { return read_pod_groups(root); },
            [this](const Result<std::set<std::string>>& uids) {
              if (!uids) return;  // the groups could not be read: no pod counts as ended
              node_.on_pod_groups(*uids);
              settle();
            });
}

void Agent::settle() {
  for (const auto& endpoint : endpoints_) endpoint->publish();
  for (const LeaseEnding& ending : node_.take_endings()) {
    link_.end_lease_on(leases_, ending, "a container");
  }
  for (const LeaseName& name : node_.take_names()) {
    leases_.run([daemon = daemon_, name] { return name_lease(daemon, name); },
                [](const Result<void>& named) {
                  if (named) return;
                  log::warn("a lease cannot be given the name of its pod, ignoring",
                            {{"error", named.error().message}});
                });
  }
}

}  // namespace gpurota::kube
