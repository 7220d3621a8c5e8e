// The devices that were allocated to containers, with their tokens: the only state of the plugin,
// in one small file. State thread only.
//
// Kubelet calls Allocate once for a container, stores the answer with its token, and starts the
// container with it as often as needed. Kubelet never reports that a container is gone. So an
// allocation stays here until its devices are allocated to another container; its lease ends
// before.
#pragma once

#include "core/time.h"
#include "kube/device_ids.h"
#include "proto/types.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::kube {

struct Allocation {
  std::string id;  // its name at the daemon: "kube-" and hex digits
  std::string token;
  Resource resource = Resource::kGpu;
  std::set<Device> devices;
  std::optional<proto::Pod> pod{};  // set once kubelet has listed it
  std::string pod_uid{};            // set once the daemon has seen a process of it on a GPU

  // Observed since the plugin started; not stored.
  std::optional<LeaseId> lease{};  // as last reported by the daemon
  std::optional<LeaseId> had{};    // its last lease
  TimePoint asked{};               // kubelet's last call for it, or the start of the plugin
  bool counted = false;            // the daemon's last view has its lease, perhaps an ending one
  bool used = false;               // a process on a GPU uses the lease
  bool listed = false;             // in kubelet's last list
  int groupless = 0;               // polls in a row without a control group of its pod
  bool ended = false;              // its pod has ended, though kubelet lists it
  int missing = 0;                 // lists without it, in a row, that were requested after `asked`
};

class AllocationBook {
 public:
  // A missing file is an empty book; the folder must exist. An unreadable file is an error: without
  // it, running containers would have no lease.
  static Result<AllocationBook> open(std::string file, TimePoint now);

  // A new allocation, stored on return. `over`: the allocations that had some of these devices
  // before; kubelet reallocates devices only when their container is gone.
  struct Made {
    const Allocation* made = nullptr;
    std::vector<Allocation> over;
  };
  Result<Made> add(Allocation allocation);
  // The allocation of exactly these devices.
  Allocation* find(Resource resource, const std::set<Device>& devices);
  Allocation* find(const std::string& id);
  // Sets the pod of the allocation, and stores it if it is new.
  Result<void> name(Allocation& allocation, const proto::Pod& pod);
  Result<void> identify(Allocation& allocation, const std::string& pod_uid);

  std::map<std::string, Allocation>& all() { return allocations_; }
  const std::map<std::string, Allocation>& all() const { return allocations_; }

 private:
  explicit AllocationBook(std::string file) : file_(std::move(file)) {}
  Result<void> store() const;

  std::string file_;
  std::map<std::string, Allocation> allocations_;  // by id
};

}  // namespace gpurota::kube
