// What is read of this machine for its containers. Reads files; any thread but the state thread.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace gpurota::kube {

// Of a GPU by its PCI address as the driver writes it; nothing: it has none, or it is not known.
std::optional<int> read_numa_node(const std::string& pci, const std::string& host_root);

// Of these tokens those that a process of this machine has been started with: their containers live. Empty text of /proc/PID/environ, as of
// the kernel's threads and of who has just ended, has none. Sees the processes of the PID namespace that it runs in.
std::set<std::string> read_living_tokens(const std::set<std::string>& tokens);

}  // namespace gpurota::kube
