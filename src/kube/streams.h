// How a service of ours tells kubelet a published value: a stream that sends the newest each time
// it has changed. gRPC's own types are template parameters, as its header is for .cpp files.
#pragma once

#include "kube/published.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gpurota::kube {

// Those of one server. Any thread.
class Streams {
 public:
  int open() const { return open_; }
  // Each ends in a moment; before the server does.
  void end() { ending_ = true; }

  // Until the other side or end() ends it. `message_of(value, since)` is what is sent of it,
  // `since` it was published last. Also without a change after `again`, if that is not 0 and it was
  // published since. False: there are too many already.
  template <class Value, class Context, class Writer, class MessageOf>
  bool tell(const Published<Value>& published, const Context& context, Writer& writer,
            MessageOf message_of, std::chrono::milliseconds again = {}) {
    const Open open(open_);
    if (open_ > kMost) return false;
    std::uint64_t version = 0;
    std::chrono::steady_clock::time_point sent;
    while (!ending_ && !context.IsCancelled()) {
      const auto seen = published.wait(version, kCheckEvery);
      // A value that was withdrawn is not repeated.
      const bool is_due = again.count() > 0 && seen.said - sent >= again;
      if (!seen.value || (seen.version == version && !is_due)) continue;
      version = seen.version;
      sent = seen.said;
      if (!writer.Write(message_of(*seen.value, seen.said))) break;
    }
    return true;
  }

 private:
  // Between two checks whether a stream has been cancelled.
  static constexpr std::chrono::milliseconds kCheckEvery{500};
  // Kubelet opens one for each registration. A client that opens more is not kubelet.
  static constexpr int kMost = 16;

  class Open {
   public:
    explicit Open(std::atomic<int>& open) : open_(open) { ++open_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() { --open_; }

   private:
    std::atomic<int>& open_;
  };

  std::atomic<int> open_ = 0;
  std::atomic<bool> ending_ = false;
};

}  // namespace gpurota::kube
