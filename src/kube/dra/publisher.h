// Keeps the node's devices published: at each change, after a failure with a pause that grows, and
// when others have changed or removed them, which it watches; and now and then all the same. State
// thread only.
#pragma once

#include "kube/api/back_off.h"
#include "kube/dra/publish.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <atomic>
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
    sys::Worker& watcher;
    std::shared_ptr<ApiClient> api;
    std::string node;
    Duration review;  // the time between two checks whether they are still there
  };
  explicit Publisher(Parts parts);
  ~Publisher() { stop_watch(); }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Sets the devices to publish from now on. The same again costs nothing.
  void want(std::vector<SliceDevice> devices);
  // Somebody may have removed them (kubelet does, of a driver that was away).
  void check_again();
  // As well, and the API server may be of another version now.
  void check_anew();

 private:
  void feed();
  void on_published(Result<PublishedSlices> published, const std::vector<SliceDevice>& devices);
  void arm(Duration pause);
  void watch();
  void on_watched(const Result<bool>& changed);
  void stop_watch() { *stop_ = true; }

  Parts parts_;
  std::vector<SliceDevice> wanted_;
  PublishedSlices known_;
  BackOff back_off_;
  std::minstd_rand random_;
  ports::EventLoop::SourcePtr timer_;
  bool busy_ = false, is_due_ = false, is_refused_ = false, is_anew_ = false;

  // One watch at a time. The watch knows the slices that were published before it began, so it ends
  // before others are published.
  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  BackOff watch_back_off_;
  BackOff change_back_off_;  // of changes that others make soon after a slice was published
  TimePoint watch_began_{};
  ports::EventLoop::SourcePtr watch_timer_;
  bool watching_ = false, cannot_watch_ = false;
};

}  // namespace gpurota::kube
