// Reports when files appear in a folder or disappear. State thread only.
#pragma once

#include "base/fd.h"
#include "ports/event_loop.h"

#include <functional>
#include <string>

namespace gpurota::kube {

class FolderWatch {
 public:
  // `changed` is called once for all changes since its last call. kNotFound if there is no such
  // folder.
  static Result<FolderWatch> make(ports::EventLoop& loop, const std::string& folder,
                                  std::function<void()> changed);

 private:
  FolderWatch() = default;

  Fd fd_;
  ports::EventLoop::SourcePtr source_;  // destroyed before fd_
};

}  // namespace gpurota::kube
