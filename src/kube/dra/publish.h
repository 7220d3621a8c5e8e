// Brings the node's ResourceSlices at the API server to what is wanted. Blocks; any thread but the
// state thread.
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

// Our slices that are known to be published, by their names, with the version that the API server
// gave them, and their content.
struct PublishedSlices {
  std::map<std::string, std::string> versions;
  std::vector<SliceDevice> devices;
  std::int64_t generation = 0;  // of the pool
  std::string node_uid;         // slices go with their node
  bool counters = false;        // whether they have counters
  // Whether the API server takes them; empty: to be found out.
  std::optional<bool> takes_counters{};
  std::string
      list_version;  // of all that there is at the API server, when they were looked at last
};

// Looks at what is there and writes what is different, or what somebody else has changed; nothing
// if it is as it was left. Conflicts (409) and slices that are gone (404) are looked at anew, a few
// times. An error: nothing is known, and it is to be tried again. kNotFound: there is no such node.
Result<PublishedSlices> publish_slices(ApiClient& api, const std::string& node,
                                       const std::vector<SliceDevice>& wanted,
                                       PublishedSlices known);

// Waits until somebody else changes or removes one of them, or makes another: true. False: nobody
// has, and the API server has ended the watch, as it does every few minutes, or `stop` was set. A
// version that the API server does not remember any more (410) counts as a change. An error: it
// cannot be watched now.
Result<bool> wait_for_change(ApiClient& api, const std::string& node, const PublishedSlices& known,
                             const std::atomic<bool>& stop);

}  // namespace gpurota::kube
