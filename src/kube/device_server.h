// A device plugin as kubelet sees it: one resource, served at a Unix socket (v1beta1), and its
// registration. gRPC stays in the .cpp; gRPC's threads call the handler given here.
#pragma once

#include "base/result.h"
#include "kube/container_answer.h"
#include "kube/offer.h"
#include "kube/published.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::kube {

using Offers = std::vector<Offered>;

// Answers kubelet's calls for one resource. Called on gRPC's threads, several at a time.
class DeviceHandler {
 public:
  using Ids = std::vector<std::string>;
  virtual ~DeviceHandler() = default;
  // Answers from memory, and refuses only invalid calls: an Allocate that hangs stops the admission
  // of every pod on the node, and one that fails makes tens of failed pods.
  virtual Result<ContainerAnswer> allocate(const Ids& ids) = 0;
  virtual Ids prefer(const Ids& available, const Ids& must_include, std::size_t size) = 0;
  // Called before each start of a container. Kubelet retries a failure, and shows its message in
  // `kubectl describe pod`.
  virtual Result<void> pre_start(const Ids& ids) = 0;
};

class DeviceServer {
 public:
  // Replaces whatever is at `socket`. `handler` and `offers` must outlive the server. kIo if it
  // cannot listen there.
  static Result<std::unique_ptr<DeviceServer>> listen(const std::string& socket,
                                                      DeviceHandler& handler,
                                                      const Published<Offers>& offers);
  virtual ~DeviceServer() = default;  // closes all connections
  // The number of kubelet's streams: more than one for a moment after a new registration.
  virtual int streams() const = 0;
  // Whether the socket still exists: kubelet removes all sockets of the folder when it starts.
  virtual bool is_there() const = 0;
};

// Registers a resource with kubelet; `endpoint` is the name of its socket in the same folder.
// Blocks: not on the state thread.
Result<void> register_device(const std::string& kubelet_socket, const std::string& endpoint,
                             const std::string& resource, std::chrono::milliseconds patience);

}  // namespace gpurota::kube
