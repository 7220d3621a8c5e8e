// Which devices of the node containers have been answered for, under which token: the one state of
// the plugin, in one small file. State thread only.
//
// Kubelet asks once for a container (Allocate), keeps the answer with the token in it, and starts
// the container with it as often as it has to. Kubelet never says that a container is gone. So an
// allocation stays here until its devices are given to another; its lease ends before.
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
  std::string id;  // as the daemon knows it: "kube-" and hex digits
  std::string token;
  Resource resource = Resource::kGpu;
  std::set<Device> devices;
  std::optional<proto::Pod> pod{};  // once kubelet has listed it
  std::string pod_uid{};            // once the daemon has seen a process of it on a GPU

  // Its state as seen since the plugin runs; not stored.
  std::optional<LeaseId> lease{};  // as the daemon last said
  std::optional<LeaseId> had{};    // the last one that it had
  TimePoint asked{};               // when kubelet last asked for it, or the plugin has started
  bool counted = false;            // the daemon's last view has its lease, be it one that ends
  bool used = false;               // a process on a GPU has the lease
  bool listed = false;             // kubelet's last list has it
  int groupless = 0;               // so many polls in a row found no control group of its pod
  bool ended = false;              // its pod has, though kubelet lists it
  int missing = 0;  // so many lists in a row, that began after it was asked for, have not
};

class AllocationBook {
 public:
  // `file` need not be there; its folder must. A file that cannot be read is an error: without it
  // containers that run would be without a lease.
  static Result<AllocationBook> open(std::string file, TimePoint now);

  // Stored on return. Of `over`, what had some of these devices: kubelet gives them anew only when
  // their container is gone.
  struct Made {
    const Allocation* made = nullptr;
    std::vector<Allocation> over;
  };
  Result<Made> add(Allocation allocation);
  // With exactly these devices.
  Allocation* find(Resource resource, const std::set<Device>& devices);
  Allocation* find(const std::string& id);
  // Of whom it is; stored if it is new.
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
