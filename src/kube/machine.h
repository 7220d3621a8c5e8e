// Reads the facts about this machine that its containers need. Reads files; any thread but the
// state thread.
#pragma once

#include "base/result.h"

#include <optional>
#include <set>
#include <string>

namespace gpurota::kube {

// The location of a GPU in the machine, as the kernel reports it.
struct PciPlace {
  std::string address;      // 0000:01:00.0
  std::string root;         // the host bridge above it, pci0000:00; empty: unknown
  std::optional<int> numa;  // its NUMA node; empty: none or unknown
  bool operator==(const PciPlace&) const = default;
};

// Finds where a GPU is in the machine. `pci`: its PCI address as the driver writes it. `host_root`:
// the folder where the machine's "/" is.
PciPlace read_pci_place(const std::string& pci, const std::string& host_root);

// Those of `tokens` that are in the initial environment of a process on this machine. The container
// of such a token runs. A process whose /proc/PID/environ is empty (kernel threads, processes that
// have just ended) or unreadable has no token. Sees the processes of its own PID namespace. `proc`:
// "/proc". Error: some could not be read now, so a token not found may still be in use.
Result<std::set<std::string>> read_living_tokens(const std::set<std::string>& tokens,
                                                 const std::string& proc);

}  // namespace gpurota::kube
