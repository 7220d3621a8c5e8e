// Keeps the node's devices published: at each change, after a failure with a pause that grows, and now and then all the same, as others may
// remove them. State thread only.
#pragma once

#include "kube/dra/back_off.h"
#include "kube/dra/publish.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace gpurota::kube {

class Publisher {
 public:
  // All outlive it, but for `api`, which what hangs may keep.
  struct Parts {
    ports::EventLoop& loop;
    sys::Worker& worker;
    std::shared_ptr<ApiClient> api;
    std::string node;
    Duration review;  // so long nobody looks whether they are still there
  };
  explicit Publisher(Parts parts);

  // What is to be published from now on. The same again costs nothing.
  void want(std::vector<SliceDevice> devices);
  // Somebody may have removed them (kubelet does, of a driver that was away).
  void look_again();

 private:
  void feed();
  void on_published(Result<PublishedSlices> published, const std::vector<SliceDevice>& devices);
  void arm(Duration pause);

  Parts parts_;
  std::vector<SliceDevice> wanted_;
  PublishedSlices known_;
  BackOff back_off_;
  std::minstd_rand random_;
  ports::EventLoop::SourcePtr timer_;
  bool busy_ = false, is_due_ = false, is_refused_ = false;
};

}  // namespace gpurota::kube
