// Keeps the node's devices published: writes them at each change, when a watch shows that others
// have changed or removed them, and periodically. Failures are retried with growing pauses. State
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
  // All must outlive the object, except `api`, which a hung call may keep.
  struct Parts {
    ports::EventLoop& loop;
    sys::Worker& worker;
    sys::Worker& watcher;
    std::shared_ptr<ApiClient> api;
    std::string node;
    Duration review;  // the time between two checks that the slices still exist
  };
  explicit Publisher(Parts parts);
  ~Publisher() { stop_watch(); }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Sets the devices to publish from now on. Setting the same ones again costs nothing.
  void want(std::vector<SliceDevice> devices);
  // Call it when somebody may have removed the slices (kubelet does so for a driver that was away).
  void check_again();
  // Like check_again(). Also asks again whether the API server accepts counters, because its
  // version may have changed.
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

  // Ends the only watch. A watch knows only the slices that were published before it began, so it
  // must end before new slices are published.
  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  BackOff watch_back_off_;
  BackOff change_back_off_;  // for changes by others soon after a slice was published
  TimePoint watch_began_{};
  ports::EventLoop::SourcePtr watch_timer_;
  bool watching_ = false, cannot_watch_ = false;
};

}  // namespace gpurota::kube
