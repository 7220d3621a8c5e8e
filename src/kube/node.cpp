#include "kube/node.h"

#include "base/log.h"
#include "kube/packing.h"
#include "kube/pod_leases.h"
#include "kube/wish.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpurota::kube {
namespace {

constexpr std::string_view kOurs = "kube-";
constexpr std::size_t kIdDigits = 16;
// How long devices stay promised to a container that never starts because its pod is gone.
constexpr Duration kPromise = std::chrono::minutes(2);
// Lists of kubelet in a row without the container.
constexpr int kMissingLists = 2;
// Polls in a row without a control group of the pod.
constexpr int kGrouplessPolls = 2;

std::string ids_text(Resource resource, const std::set<Device>& devices) {
  return fmt::format("{} of {}", devices.size(), to_string(resource));
}

// Adds the memory that will be free when the lease has ended.
void add_memory_of(const proto::Lease& lease, std::vector<NodeGpu>& gpus) {
  if (lease.share != proto::Share::kSlice || lease.parked == proto::ParkState::kParked) return;
  for (const proto::LeaseGpu& share : lease.gpus) {
    for (NodeGpu& gpu : gpus) {
      if (gpu.uuid == share.uuid) gpu.free += share.limit_bytes.value_or(Bytes());
    }
  }
}

}  // namespace

Result<ContainerAnswer> Node::allocate(Resource resource, const std::vector<std::string>& ids) {
  GPUROTA_ASSIGN_OR_RETURN(std::set<Device> devices, parse_device_ids(resource, ids));
  if (!view_) return fail(Code::kUnavailable, "gpurotad has not been heard yet");
  Allocation allocation;
  allocation.token = settings_.make_token();
  const std::string unique = settings_.make_token().substr(0, kIdDigits);
  if (allocation.token.empty() || unique.empty()) {
    return fail(Code::kInternal, "the kernel has no random numbers");
  }
  allocation.id = std::string(kOurs) + unique;
  allocation.resource = resource;
  allocation.devices = std::move(devices);
  allocation.asked = settings_.now();
  // The answer depends on the devices only. If there can be no lease, the error comes from
  // PreStartContainer, a call that kubelet retries.
  GPUROTA_ASSIGN_OR_RETURN(ContainerAnswer answer,
                           container_answer(resource, gpus_of(allocation.devices), allocation.token,
                                            settings_.giver, view_->node));
  GPUROTA_ASSIGN_OR_RETURN(const AllocationBook::Made made, book_.add(std::move(allocation)));
  for (const Allocation& over : made.over) drop(over);
  log::info("a container is given devices",
            {{"allocation", made.made->id}, {"devices", ids_text(resource, made.made->devices)}});
  return answer;
}

void Node::drop(const Allocation& allocation) {
  if (!allocation.lease) return;
  leaving_.insert(*allocation.lease);
  endings_.push_back({*allocation.lease, "its devices were given to another container"});
}

std::vector<std::string> Node::prefer(Resource resource, const std::vector<std::string>& available,
                                      const std::vector<std::string>& must_include,
                                      std::size_t size) const {
  std::map<GpuUuid, int> numa;
  if (view_) {
    for (const NodeGpu& gpu : view_->node.gpus) {
      if (gpu.place.numa) numa[gpu.uuid] = *gpu.place.numa;
    }
  }
  return kube::prefer(resource, available, must_include, size, numa);
}

LeaseOrder Node::order_of(const Allocation& allocation, proto::LeaseRequest request) const {
  return {allocation.id, allocation.token, std::move(request), allocation.pod};
}

Result<LeaseOrder> Node::pre_start(Resource resource, const std::vector<std::string>& ids) {
  GPUROTA_ASSIGN_OR_RETURN(const std::set<Device> devices, parse_device_ids(resource, ids));
  Allocation* const allocation = book_.find(resource, devices);
  if (!allocation) {
    return fail(Code::kNotFound,
                "nothing is known of these devices, as what was stored of them was "
                "lost: delete the pod");
  }
  allocation->asked = settings_.now();
  allocation->missing = allocation->groupless = 0;
  allocation->ended = false;
  GPUROTA_ASSIGN_OR_RETURN(proto::LeaseRequest wish,
                           lease_wish(resource, devices, settings_.rules));
  return order_of(*allocation, std::move(wish));
}

void Node::on_lease(const std::string& id, const proto::Lease& lease) {
  Allocation* const allocation = book_.find(id);
  if (!allocation) {
    endings_.push_back({lease.lease_id, "its devices were given to another container"});
    return;
  }
  allocation->lease = allocation->had = lease.lease_id;
}

void Node::on_daemon(Result<DaemonView> view) {
  if (view_.hear(std::move(view), settings_.now())) find_leases();
}

// Matches the daemon's leases with allocations, and ends leases without one.
void Node::find_leases() {
  for (auto& [id, allocation] : book_.all()) {
    allocation.lease.reset();
    allocation.counted = allocation.used = false;
  }
  const auto is_gone = [this](LeaseId id) {
    return std::none_of(view_->pods.begin(), view_->pods.end(),
                        [id](const proto::Lease& lease) { return lease.lease_id == id; });
  };
  std::erase_if(named_, is_gone);
  std::erase_if(leaving_, is_gone);
  for (const proto::Lease& lease : view_->pods) {
    const std::string id = lease.allocation.value_or("");
    if (!id.starts_with(kOurs)) continue;
    Allocation* const allocation = book_.find(id);
    if (allocation) allocation->counted = true;
    if (lease.state == proto::LeaseState::kEnding) continue;
    if (allocation) {
      allocation->lease = allocation->had = lease.lease_id;
      allocation->used = lease.processes > 0;
      identify(*allocation);
      if (lease.pod) named_.insert(lease.lease_id);
    } else if (lease.processes == 0) {
      // The allocation was lost with the stored state. A lease in use still has a container, so
      // only an unused lease is ended.
      endings_.push_back({lease.lease_id, "no container is known that it is for"});
    }
  }
}

void Node::identify(Allocation& allocation) {
  const auto uid = view_->pod_uids.find(*allocation.lease);
  if (uid == view_->pod_uids.end() || !allocation.pod_uid.empty()) return;
  if (const auto stored = book_.identify(allocation, uid->second); !stored) {
    log::warn("cannot store which pod has devices, ignoring", {{"error", stored.error().message}});
  }
}

void Node::on_pods(const std::vector<PodDevices>& list, TimePoint asked) {
  for (auto& [id, allocation] : book_.all()) {
    const auto name = settings_.names.find(allocation.resource);
    if (name == settings_.names.end()) continue;
    const auto has_it = [&, &devices = allocation.devices](const PodDevices& container) {
      return container.resource == name->second &&
             std::all_of(devices.begin(), devices.end(), [&](const Device& device) {
               return container.devices.contains(device_id(name->first, device));
             });
    };
    const auto holder = std::find_if(list.begin(), list.end(), has_it);
    allocation.listed = holder != list.end();
    if (!allocation.listed) {
      if (asked > allocation.asked) ++allocation.missing;
      continue;
    }
    allocation.missing = 0;
    if (const auto stored = book_.name(allocation, holder->pod); !stored) {
      log::warn("cannot store which pod has devices, ignoring",
                {{"error", stored.error().message}});
    }
    if (!allocation.lease || !named_.insert(*allocation.lease).second) continue;
    names_.push_back({*allocation.lease, holder->pod});
  }
}

std::set<std::string> Node::missing_tokens() const {
  std::set<std::string> tokens;
  for (const auto& [id, allocation] : book_.all()) {
    if (allocation.lease && allocation.missing >= kMissingLists) tokens.insert(allocation.token);
  }
  return tokens;
}

void Node::on_living(const std::set<std::string>& looked_for, const std::set<std::string>& living) {
  for (auto& [id, allocation] : book_.all()) {
    const bool gone = allocation.lease && allocation.missing >= kMissingLists &&
                      looked_for.contains(allocation.token) && !living.contains(allocation.token);
    if (gone) end(allocation, "its container is gone");
  }
}

std::vector<LeaseId> Node::leases_of_unknown_pods() const {
  std::vector<LeaseId> leases;
  for (const auto& [id, allocation] : book_.all()) {
    if (allocation.lease && allocation.pod_uid.empty()) leases.push_back(*allocation.lease);
  }
  return leases;
}

// Whether the pod is known, and has no process on a GPU.
bool Node::may_have_ended(const Allocation& allocation) const {
  return allocation.lease && allocation.listed && !allocation.used && !allocation.pod_uid.empty();
}

bool Node::wants_pod_groups() const {
  return std::any_of(book_.all().begin(), book_.all().end(),
                     [this](const auto& each) { return may_have_ended(each.second); });
}

void Node::on_pod_groups(const std::set<std::string>& uids) {
  for (auto& [id, allocation] : book_.all()) {
    if (uids.contains(allocation.pod_uid)) allocation.ended = false;
    const bool is_without = may_have_ended(allocation) && !uids.contains(allocation.pod_uid);
    allocation.groupless = is_without ? allocation.groupless + 1 : 0;
    if (allocation.groupless < kGrouplessPolls) continue;
    allocation.ended = true;
    end(allocation, "its pod has ended");
  }
}

void Node::end(Allocation& allocation, const std::string& why) {
  endings_.push_back({*allocation.lease, why});
  allocation.lease.reset();
  allocation.had.reset();
}

// Devices that containers have. A container without a lease has its devices as long as kubelet
// lists the container, and for kPromise after the call that gave it the devices. A device stays
// counted as long as the daemon's free memory does not contain it. So nothing is offered twice, and
// the offer never drops briefly: kubelet would then refuse for good a pod that the scheduler has
// sent.
std::vector<Taken> Node::taken() const {
  std::vector<Taken> taken;
  const TimePoint now = settings_.now();
  for (const auto& [id, allocation] : book_.all()) {
    const bool promised = now - allocation.asked < kPromise && allocation.missing < kMissingLists;
    const bool expected = !allocation.ended && (allocation.listed || promised);
    if (!allocation.lease && !allocation.counted && !expected) continue;
    for (const Device& device : allocation.devices) {
      taken.push_back({allocation.resource, device, allocation.counted});
    }
  }
  return taken;
}

std::vector<SeenPod> Node::pods() const {
  std::vector<SeenPod> seen;
  if (!view_) return seen;
  const PodLeases leases(*view_);
  for (const auto& [id, allocation] : book_.all()) {
    const bool is_there = allocation.missing < kMissingLists && !allocation.ended;
    if (!is_there || !allocation.pod || allocation.pod_uid.empty()) continue;
    SeenPod& found = seen.emplace_back();
    found.key = id;
    found.ref = {allocation.pod->namespace_, allocation.pod->name, allocation.pod_uid,
                 allocation.pod->container};
    found.first_lease = allocation.had;
    leases.show(id, allocation.lease, found);
  }
  return seen;
}

std::vector<Offered> Node::offers(Resource resource) const {
  if (!view_) return {};
  std::vector<NodeGpu> gpus = view_.gpus(settings_.now());
  for (const proto::Lease& lease : view_->pods) {
    if (leaving_.contains(lease.lease_id)) add_memory_of(lease, gpus);
  }
  return offer(resource, gpus, taken(), settings_.rules, view_->host_memory);
}

}  // namespace gpurota::kube
