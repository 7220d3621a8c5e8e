// One resource at kubelet: its socket, its registration, and the answers to kubelet's calls about
// it. State thread, unless a comment says otherwise.
#pragma once

#include "client/locate.h"
#include "kube/device_server.h"
#include "kube/node.h"
#include "kube/questions.h"
#include "kube/registration.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <functional>
#include <memory>
#include <string>

namespace gpurota::kube {

class Endpoint final : private DeviceHandler {
 public:
  // All must outlive the object.
  struct Parts {
    ports::EventLoop& loop;
    Node& node;
    Questions& questions;
    sys::Worker& sockets;
    const client::Location& daemon;
    std::string plugins_dir;
    std::function<void()> changed;  // called after an answer changed the node
  };
  Endpoint(Parts parts, Resource resource, std::string name);

  void publish() { offers_.publish(parts_.node.offers(resource_)); }
  // Serves or registers the resource if needed. Call it periodically, and when kubelet's folder has
  // changed.
  void check();

 private:
  // On gRPC's threads.
  Result<ContainerAnswer> allocate(const Ids& ids) override;
  Ids prefer(const Ids& available, const Ids& must_include, std::size_t size) override;
  Result<void> pre_start(const Ids& ids) override;

  void serve();
  void register_now(const SocketId& kubelet);

  Parts parts_;
  const Resource resource_;
  const std::string name_;  // the full name of the resource
  const std::string endpoint_;
  const std::string socket_, kubelet_;
  Published<Offers> offers_;
  std::shared_ptr<DeviceServer> server_;
  Registration registration_;
  bool busy_ = false;        // a worker serves or registers the resource
  bool is_refused_ = false;  // the refusal was logged
};

}  // namespace gpurota::kube
