// Reads the facts of this machine for its containers. Reads files; any thread but the state thread.
#pragma once

#include "base/result.h"

#include <optional>
#include <set>
#include <string>

namespace gpurota::kube {

// Where a GPU is in the machine, as the kernel has it.
struct PciPlace {
  std::string address;      // 0000:01:00.0
  std::string root;         // the host bridge that it is behind, pci0000:00; empty: not known
  std::optional<int> numa;  // the NUMA node that it is close to; nothing: none, or not known
  bool operator==(const PciPlace&) const = default;
};

// By its PCI address as the driver writes it. `host_root`: what "/" of the machine is.
PciPlace read_pci_place(const std::string& pci, const std::string& host_root);

// Of these tokens those that a process of this machine has been started with: their containers
// live. Empty text of /proc/PID/environ, as of the kernel's threads and of who has just ended, has
// none; nor has one that nobody may read. Sees the processes of the PID namespace that it runs in.
// `proc`: "/proc". An error: not all can be read now, so that nothing is known of those that are
// not found.
Result<std::set<std::string>> read_living_tokens(const std::set<std::string>& tokens,
                                                 const std::string& proc);

}  // namespace gpurota::kube
