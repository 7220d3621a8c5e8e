// A device plugin as kubelet sees it: one resource, served at a Unix socket (v1beta1), and how
// kubelet is told of it. gRPC stays in the .cpp; its threads call what is given here.
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

// Whom kubelet's questions about one resource go to. Called on gRPC's threads, several at once.
class DeviceHandler {
 public:
  using Ids = std::vector<std::string>;
  virtual ~DeviceHandler() = default;
  // A hung Allocate stops the admission of every pod of the node, and a failing one makes tens of
  // dead pods: it answers from memory, and refuses only what makes no sense.
  virtual Result<ContainerAnswer> allocate(const Ids& ids) = 0;
  virtual Ids prefer(const Ids& available, const Ids& must_include, std::size_t size) = 0;
  // Before each start of a container. A failure is retried, and its message reaches `kubectl
  // describe pod`.
  virtual Result<void> pre_start(const Ids& ids) = 0;
};

class DeviceServer {
 public:
  // In the place of what is at `socket`. `handler` and `offers` outlive it. kIo if it cannot listen
  // there.
  static Result<std::unique_ptr<DeviceServer>> listen(const std::string& socket,
                                                      DeviceHandler& handler,
                                                      const Published<Offers>& offers);
  virtual ~DeviceServer() = default;  // hangs up on everybody
  // The number of kubelet's streams: several for a moment after it has registered us again.
  virtual int streams() const = 0;
  // Kubelet removes all sockets of the folder when it starts.
  virtual bool is_there() const = 0;
};

// Tells the kubelet at that socket of a resource that is served at `endpoint`, a name in the same
// folder. Blocks: not on the state thread.
Result<void> register_device(const std::string& kubelet_socket, const std::string& endpoint,
                             const std::string& resource, std::chrono::milliseconds patience);

}  // namespace gpurota::kube
