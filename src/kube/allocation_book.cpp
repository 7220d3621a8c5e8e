#include "kube/allocation_book.h"

#include "kube/message_file.h"
#include "kube/proto/allocations.pb.h"

#include <algorithm>

namespace gpurota::kube {
namespace {

stored::Allocation row_of(const Allocation& allocation) {
  stored::Allocation row;
  row.set_allocation(allocation.id);
  row.set_token(allocation.token);
  row.set_resource(to_string(allocation.resource));
  for (const Device& device : allocation.devices) {
    row.add_devices(device_id(allocation.resource, device));
  }
  if (allocation.pod) {
    row.set_namespace_(allocation.pod->namespace_);
    row.set_pod(allocation.pod->name);
    row.set_container(allocation.pod->container);
  }
  row.set_pod_uid(allocation.pod_uid);
  return row;
}

Result<Allocation> allocation_of(const stored::Allocation& row, TimePoint now) {
  Allocation allocation;
  allocation.id = row.allocation();
  allocation.token = row.token();
  GPUROTA_ASSIGN_OR_RETURN(allocation.resource, parse_resource(row.resource()));
  GPUROTA_ASSIGN_OR_RETURN(
      allocation.devices,
      parse_device_ids(allocation.resource, {row.devices().begin(), row.devices().end()}));
  if (!row.pod().empty()) {
    allocation.pod = proto::Pod{row.namespace_(), row.pod(), row.container()};
  }
  allocation.pod_uid = row.pod_uid();
  allocation.asked = now;
  return allocation;
}

bool share_some(const std::set<Device>& a, const std::set<Device>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Device& device) { return b.contains(device); });
}

}  // namespace

Result<AllocationBook> AllocationBook::open(std::string file, TimePoint now) {
  AllocationBook book(std::move(file));
  stored::Allocations rows;
  GPUROTA_TRY(read_message(book.file_, rows));
  for (const stored::Allocation& row : rows.allocations()) {
    auto allocation = allocation_of(row, now);
    if (!allocation) return damaged_file(book.file_, allocation.error().message);
    book.allocations_.emplace(allocation->id, std::move(*allocation));
  }
  return book;
}

Result<void> AllocationBook::store() const {
  stored::Allocations rows;
  for (const auto& [id, allocation] : allocations_) *rows.add_allocations() = row_of(allocation);
  return store_message(file_, rows);
}

Result<AllocationBook::Made> AllocationBook::add(Allocation allocation) {
  Made made;
  const auto before = allocations_;
  for (auto at = allocations_.begin(); at != allocations_.end();) {
    const bool same = at->second.resource == allocation.resource &&
                      share_some(at->second.devices, allocation.devices);
    if (same) made.over.push_back(at->second);
    at = same ? allocations_.erase(at) : std::next(at);
  }
  const std::string id = allocation.id;
  made.made = &(allocations_[id] = std::move(allocation));
  if (auto stored = store(); !stored) {
    allocations_ = before;
    return tl::unexpected(std::move(stored).error().context("cannot store what a container has"));
  }
  return made;
}

Allocation* AllocationBook::find(Resource resource, const std::set<Device>& devices) {
  for (auto& [id, allocation] : allocations_) {
    if (allocation.resource == resource && allocation.devices == devices) return &allocation;
  }
  return nullptr;
}

Allocation* AllocationBook::find(const std::string& id) {
  const auto at = allocations_.find(id);
  return at == allocations_.end() ? nullptr : &at->second;
}

Result<void> AllocationBook::name(Allocation& allocation, const proto::Pod& pod) {
  if (allocation.pod == pod) return {};
  allocation.pod = pod;
  return store();
}

Result<void> AllocationBook::identify(Allocation& allocation, const std::string& pod_uid) {
  if (allocation.pod_uid == pod_uid) return {};
  allocation.pod_uid = pod_uid;
  return store();
}

}  // namespace gpurota::kube
