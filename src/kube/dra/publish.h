// Updates the node's ResourceSlices at the API server. Blocks; any thread but the state thread.
#pragma once

#include "kube/api/api_client.h"
#include "kube/dra/slice.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

// The slices that we have published: their names, the versions that the API server gave them, and
// their content.
struct PublishedSlices {
  std::map<std::string, std::string> versions;
  std::vector<SliceDevice> devices;
  std::int64_t generation = 0;  // of the pool
  std::string node_uid;         // slices are deleted with their node
  bool counters = false;        // whether the slices have counters
  // Whether the API server accepts counters; empty: unknown.
  std::optional<bool> takes_counters{};
  std::string list_version;  // of the list of all slices, when last read
};

// Reads the existing slices, and writes those that differ or that somebody else has changed; writes
// nothing if all are as we left them. After a conflict (409) or a deleted slice (404) reads them
// again, a few times. Error: the state is unknown; try again later. kNotFound: there is no such
// node.
Result<PublishedSlices> publish_slices(ApiClient& api, const std::string& node,
                                       const std::vector<SliceDevice>& wanted,
                                       PublishedSlices known);

// Waits until somebody else changes, removes or makes a slice. True: that happened, or the API
// server no longer has the version (410). False: no change; the API server has ended the watch, as
// it does every few minutes, or `stop` was set. Error: watching is not possible now.
Result<bool> wait_for_change(ApiClient& api, const std::string& node, const PublishedSlices& known,
                             const std::atomic<bool>& stop);

}  // namespace gpurota::kube
