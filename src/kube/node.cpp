#include "kube/node.h"

#include "base/log.h"
#include "kube/packing.h"
#include "kube/wish.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpurota::kube {
namespace {

constexpr std::string_view kOurs = "kube-";
constexpr std::size_t kIdDigits = 16;
// What was promised and not fetched, as its pod was gone before its container started.
constexpr Duration kPromise = std::chrono::minutes(2);
// Lists of kubelet in a row that do not have it.
constexpr int kMissingLists = 2;

std::string ids_text(Resource resource, const std::set<Device>& devices) {
  return fmt::format("{} of {}", devices.size(), to_string(resource));
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
  // An answer is what its devices are for, even where no lease can be had: that is told before the start, which is tried again.
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
  allocation->missing = 0;
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
  allocation->lease = lease.lease_id;
}

void Node::on_daemon(Result<DaemonView> view) {
  if (view_.hear(std::move(view), settings_.now())) find_leases();
}

// Which leases are whose, and which are nobody's any more.
void Node::find_leases() {
  for (auto& [id, allocation] : book_.all()) allocation.lease.reset();
  std::erase_if(named_, [&](LeaseId id) {
    return std::none_of(view_->pods.begin(), view_->pods.end(),
                        [id](const proto::Lease& lease) { return lease.lease_id == id; });
  });
  for (const proto::Lease& lease : view_->pods) {
    const std::string id = lease.allocation.value_or("");
    if (!id.starts_with(kOurs) || lease.state == proto::LeaseState::kEnding) continue;
    if (Allocation* const allocation = book_.find(id)) {
      allocation->lease = lease.lease_id;
      if (lease.pod) named_.insert(lease.lease_id);
    } else if (lease.processes == 0) {
      // What it is for was lost with what was stored; while it is used there is a container.
      endings_.push_back({lease.lease_id, "no container is known that it is for"});
    }
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
    if (auto wish = lease_wish(allocation.resource, allocation.devices, settings_.rules)) {
      names_.push_back(order_of(allocation, std::move(*wish)));
    }
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

void Node::end(Allocation& allocation, const std::string& why) {
  endings_.push_back({*allocation.lease, why});
  allocation.lease.reset();
}

// What containers have; without a lease that is so as long as kubelet lists it, and for a moment after it was promised.
std::vector<Taken> Node::taken() const {
  std::vector<Taken> taken;
  const TimePoint now = settings_.now();
  for (const auto& [id, allocation] : book_.all()) {
    const bool promised = now - allocation.asked < kPromise && allocation.missing < kMissingLists;
    if (!allocation.lease && !allocation.listed && !promised) continue;
    for (const Device& device : allocation.devices) {
      taken.push_back({allocation.resource, device, allocation.lease.has_value()});
    }
  }
  return taken;
}

std::vector<Offered> Node::offers(Resource resource) const {
  if (!view_) return {};
  return offer(resource, view_.gpus(settings_.now()), taken(), settings_.rules, view_->host_memory);
}

}  // namespace gpurota::kube
