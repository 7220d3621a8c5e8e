#include "kube/dra/driver.h"

#include "base/directory.h"
#include "base/log.h"
#include "kube/dra/claim_reader.h"
#include "kube/dra/claim_spec.h"
#include "kube/pod_groups.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace gpurota::kube {
namespace {

constexpr const char* kDriverProgram = "gpurota-dra";
constexpr std::chrono::milliseconds kOrderPatience{5000};
constexpr std::chrono::milliseconds kReviewPatience{5000};
// How long to wait for the API server before making a lease again; if the server is away, the lease
// is made all the same.
constexpr std::chrono::milliseconds kCheckPatience{2000};
constexpr mode_t kSocketFolder = 0750;

std::string driver_folder(const DraOptions& options) {
  return fmt::format("{}/plugins/{}", options.kubelet_dir, kDriverName);
}

struct Reviewed {
  bool is_there = false;  // at the API server
  bool has_pod = false;   // on this machine; also true if unknown
};
Result<Reviewed> review_claim(ApiClient& api, const UsedClaim& claim,
                              const std::string& host_root) {
  Reviewed found;
  GPUROTA_ASSIGN_OR_RETURN(found.is_there, has_claim(api, claim.id, claim.pool, kReviewPatience));
  if (found.is_there || claim.pod_uid.empty()) return found;
  const auto pods = read_pod_groups(host_root);
  found.has_pod = !pods || pods->contains(claim.pod_uid);
  return found;
}

// The event that `kubectl describe resourceclaim` shows.
PodEvent refusal_event(const ClaimId& claim, const std::string& why) {
  const PodRef ref{.space = claim.space, .name = claim.name, .uid = claim.uid, .is_claim = true};
  return {.pod = ref,
          .is_warning = true,
          .reason = "GpuLeaseRefused",
          .message = "Has no lease on this node: " + why};
}

// Ends the leases of a claim and removes its specs.
Result<void> end_claim(const client::Location& daemon, const std::string& cdi_dir,
                       const std::string& uid, const std::vector<std::string>& keys,
                       NamedLocks& locks) {
  const auto pass = locks.lock(uid, std::chrono::steady_clock::now());
  if (!pass) return fail(Code::kUnavailable, "kubelet has asked for it");
  for (const std::string& key : keys) {
    GPUROTA_TRY(end_lease_of(daemon, allocation_of(key), "its claim and its pod are gone"));
  }
  return remove_specs(cdi_dir, uid);
}

}  // namespace

Driver::Driver(ports::EventLoop& loop, const DraOptions& options, client::Location daemon,
               DraNode node)
    : loop_(loop),
      options_(options),
      daemon_(std::move(daemon)),
      registry_(options.kubelet_dir + "/plugins_registry"),
      at_{fmt::format("{}/{}-reg.sock", registry_, kDriverName),
          driver_folder(options) + "/dra.sock"},
      node_(std::move(node)),
      questions_(loop),
      sockets_(loop, "sockets"),
      leases_(loop, "leases"),
      reviews_(loop, "reviews"),
      slices_(loop, "slices"),
      slice_watch_(loop, "slice watch"),
      link_(loop, daemon_, options_.host_root) {
  api_ = std::make_shared<ApiClient>(options_.api.access, kDriverProgram);
  claim_calls_ = std::make_unique<ClaimCalls>(ClaimCalls::Parts{
      .node = node_,
      .questions = questions_,
      .locks = *locks_,
      .daemon = daemon_,
      .api = api_,
      .cdi_dir = options_.cdi_dir,
      .changed = [this] { settle(); },
      .registered = [this](const std::string& refusal) { on_registration(refusal); },
      .refused =
          [this](const ClaimId& claim, const std::string& why) {
            event_writer_->write({refusal_event(claim, why)});
          }});
  publisher_ = std::make_unique<Publisher>(
      Publisher::Parts{loop_, slices_, slice_watch_, api_, options_.api.node, options_.review});
  event_writer_ =
      std::make_unique<EventWriter>(loop_, api_, EventSource{kDriverProgram, options_.api.node});
}

Driver::~Driver() = default;

void Driver::stop() {
  questions_.end();
  server_.reset();
}

void Driver::arm() {
  timer_ = loop_.add_timer(loop_.now() + options_.interval, ports::Urgency::kHousekeeping,
                           [this] { tick(); });
}

void Driver::tick() {
  arm();
  watch_folder();
  poll_daemon();
  check_sockets();
  settle();
}

// If kubelet is not running yet, its folder may not exist: then this fails, and a later call tries
// again.
void Driver::watch_folder() {
  if (watch_) return;
  auto watch = FolderWatch::make(loop_, registry_, [this] { check_sockets(); });
  if (watch) watch_.emplace(std::move(*watch));
}

void Driver::poll_daemon() {
  link_.poll({}, [this](Result<DaemonView> view) {
    const bool is_there = view.has_value();
    node_.on_daemon(std::move(view));
    if (is_there) {
      event_writer_->write(events_.observe(node_.pods(), loop_.now()));
      review_claims();
    }
    settle();
    check_sockets();
  });
}

// Serves the sockets only when GPUs are known: kubelet calls as soon as it finds us. A removed
// socket is served again.
void Driver::check_sockets() {
  if (serving_ || !node_.knows_gpus() || (server_ && server_->is_there())) return;
  serving_ = true;
  using Listening = Result<std::unique_ptr<DraServer>>;
  sockets_.run(
      [this, folder = driver_folder(options_),
       before = std::exchange(server_, nullptr)]() mutable -> Listening {
        before.reset();
        GPUROTA_TRY(make_directory(folder, kSocketFolder));
        return DraServer::listen(at_, *claim_calls_, health_);
      },
      [this](Listening server) {
        serving_ = false;
        if (server) {
          server_ = std::move(*server);
          log::info("kubelet can find the driver", {{"socket", at_.registration}});
          is_refused_ = false;
        } else if (!std::exchange(is_refused_, true)) {
          log::error("cannot be a driver, trying again", {{"error", server.error().message}});
        }
      });
}

void Driver::on_registration(const std::string& refusal) {
  if (!refusal.empty()) {
    return log::error("kubelet does not take the driver", {{"error", refusal}});
  }
  log::info("kubelet has registered the driver");
  // Kubelet removes the slices of a driver that was away. An upgrade of the cluster also restarts
  // kubelet.
  publisher_->check_anew();
  review_.on_kubelet();
}

void Driver::settle() {
  publisher_->want(node_.devices());
  if (node_.knows_gpus()) health_.publish({options_.api.node, node_.health()});
  for (const LeaseEnding& ending : node_.take_endings()) {
    link_.end_lease_on(leases_, ending, "a claim");
  }
  std::erase_if(unleased_,
                [&](const std::string& id) { return !node_.has(find_key(id).value_or("")); });
  const std::vector<DraNode::LostLease> orders = node_.take_orders();
  if (leases_.unfinished() > 0) return;  // the next poll finds these orders again
  for (const DraNode::LostLease& each : orders) order(each);
}

// Makes a new lease in place of one that somebody has released. If the pod still runs, kubelet
// restarts its container without calling us again. A claim that is gone at the API server gets no
// lease: only an administrator could end that lease.
void Driver::order(const DraNode::LostLease& lost) {
  leases_.run(
      [daemon = daemon_, lost, locks = locks_, api = api_]() -> Result<Ordered> {
        const auto pass = locks->lock(lost.claim.id.uid, std::chrono::steady_clock::now());
        if (!pass) return Ordered{};
        const auto is_there = has_claim(*api, lost.claim.id, lost.claim.pool, kCheckPatience);
        if (is_there && !*is_there) return Ordered{.is_gone = true};
        GPUROTA_ASSIGN_OR_RETURN(const proto::Lease lease,
                                 make_lease(daemon, lost.order, kOrderPatience));
        return Ordered{.lease = lease.lease_id};
      },
      [this, lost](const Result<Ordered>& ordered) { on_ordered(lost, ordered); });
}

void Driver::on_ordered(const DraNode::LostLease& lost, const Result<Ordered>& ordered) {
  const std::string& allocation = lost.order.allocation;
  if (!ordered) {
    if (!unleased_.insert(allocation).second) return;
    return log::warn("a claim has lost its lease and cannot have another now, trying again",
                     {{"allocation", allocation}, {"error", ordered.error().message}});
  }
  if (ordered->is_gone) {
    return give_up(lost.claim.id, "the lease of a claim that is gone was released");
  }
  if (!ordered->lease) return;
  unleased_.erase(allocation);
  log::info("a claim has a lease again",
            {{"allocation", allocation}, {"lease", to_string(*ordered->lease)}});
  node_.on_lease(find_key(allocation).value_or(""), *ordered->lease);
  settle();
}

void Driver::review_claims() {
  if (reviews_.unfinished() > 0) return;
  for (const UsedClaim& claim : review_.due(node_.claims(), loop_.now())) {
    reviews_.run(
        [api = api_, claim, root = options_.host_root] { return review_claim(*api, claim, root); },
        [this, id = claim.id](const Result<Reviewed>& found) {
          if (!found) return;  // without an answer, nothing is known
          node_.on_review(id.uid, found->is_there);
          if (review_.has_gone(id.uid, found->is_there || found->has_pod)) {
            give_up(id, "a claim and its pod are gone, and kubelet does not say that it is over");
          }
          settle();
        });
  }
}

void Driver::give_up(const ClaimId& claim, const char* why) {
  log::warn(why, {{"claim", full_name(claim)}});
  reviews_.run(
      [daemon = daemon_, folder = options_.cdi_dir, uid = claim.uid, keys = node_.keys(claim.uid),
       locks = locks_] { return end_claim(daemon, folder, uid, keys, *locks); },
      [this, claim](Result<void> done) {
        if (done) done = node_.remove(claim.uid);
        if (!done) {
          return log::warn("a claim cannot be given up, trying again",
                           {{"claim", full_name(claim)}, {"error", done.error().message}});
        }
        settle();
      });
}

}  // namespace gpurota::kube
