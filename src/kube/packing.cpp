#include "kube/packing.h"

#include <algorithm>
#include <set>

namespace gpurota::kube {
namespace {

// The available devices of one GPU.
struct Group {
  GpuUuid gpu;
  std::set<int> numbers;
  bool wanted = false;  // the container gets at least one of them
};

class Choice {
 public:
  Choice(Resource resource, std::size_t size) : resource_(resource), size_(size) {}

  bool is_full() const { return ids_.size() >= size_; }
  std::size_t missing() const { return size_ - std::min(size_, ids_.size()); }
  void take(const std::string& id) {
    if (!is_full() && taken_.insert(id).second) ids_.push_back(id);
  }
  void take(const Group& group, std::size_t most) {
    for (const int number : group.numbers) {
      if (most == 0) return;
      const std::size_t before = ids_.size();
      take(device_id(resource_, {group.gpu, number}));
      most -= ids_.size() - before;
    }
  }
  std::vector<std::string> ids() && { return std::move(ids_); }

 private:
  const Resource resource_;
  const std::size_t size_;
  std::vector<std::string> ids_;
  std::set<std::string> taken_;
};

std::vector<Group> groups_of(Resource resource, const std::vector<std::string>& available,
                             const std::vector<std::string>& must_include) {
  std::map<GpuUuid, Group> groups;
  for (const std::string& id : available) {
    const auto device = parse_device_id(resource, id);
    if (!device) continue;
    Group& group = groups[device->gpu];
    group.gpu = device->gpu;
    group.numbers.insert(device->number);
  }
  for (const std::string& id : must_include) {
    const auto device = parse_device_id(resource, id);
    if (device && groups.contains(device->gpu)) groups[device->gpu].wanted = true;
  }
  std::vector<Group> list;
  for (auto& [gpu, group] : groups) list.push_back(std::move(group));
  return list;
}

// Sorts GPUs: the fullest with room for everything first, then the emptiest.
void pack(std::vector<Group>& groups, std::size_t size) {
  std::stable_sort(groups.begin(), groups.end(), [size](const Group& a, const Group& b) {
    if (a.wanted != b.wanted) return a.wanted;
    const bool fits_a = a.numbers.size() >= size, fits_b = b.numbers.size() >= size;
    if (fits_a != fits_b) return fits_a;
    return fits_a ? a.numbers.size() < b.numbers.size() : a.numbers.size() > b.numbers.size();
  });
}

// Sorts GPUs: first those of the NUMA node with the fewest GPUs that has enough; in order where
// nothing is known.
void gather(std::vector<Group>& groups, std::size_t size, const std::map<GpuUuid, int>& numa) {
  const auto node_of = [&](const Group& group) {
    const auto at = numa.find(group.gpu);
    return at == numa.end() ? -1 : at->second;
  };
  std::map<int, std::size_t> on, wanted;
  for (const Group& group : groups) {
    ++on[node_of(group)];
    wanted[node_of(group)] += group.wanted;
  }
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    if (a.wanted != b.wanted) return a.wanted;
    const int node_a = node_of(a), node_b = node_of(b);
    if (node_a == node_b) return false;
    if (wanted[node_a] != wanted[node_b]) return wanted[node_a] > wanted[node_b];
    const bool fits_a = on[node_a] >= size, fits_b = on[node_b] >= size;
    if (fits_a != fits_b) return fits_a;
    if (on[node_a] != on[node_b]) return fits_a ? on[node_a] < on[node_b] : on[node_a] > on[node_b];
    return node_a < node_b;
  });
}

void spread(std::vector<Group>& groups) {
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    if (a.wanted != b.wanted) return !a.wanted;
    return a.numbers.size() > b.numbers.size();
  });
}

}  // namespace

std::vector<std::string> prefer(Resource resource, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, std::size_t size,
                                const std::map<GpuUuid, int>& numa) {
  Choice choice(resource, size);
  for (const std::string& id : must_include) choice.take(id);
  std::vector<Group> groups = groups_of(resource, available, must_include);
  switch (resource) {
    case Resource::kMemory:
      pack(groups, size);
      break;
    case Resource::kGpu:
      gather(groups, size, numa);
      break;
    case Resource::kTurn:
      spread(groups);
      for (const Group& group : groups) choice.take(group, group.wanted ? 0 : 1);
      break;
  }
  for (const Group& group : groups) choice.take(group, choice.missing());
  for (const std::string& id : available) choice.take(id);
  return std::move(choice).ids();
}

}  // namespace gpurota::kube
