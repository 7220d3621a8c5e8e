// Streams a published value to kubelet: each stream sends the newest value whenever it has changed.
// gRPC's own types are template parameters, because its header is only for .cpp files.
#pragma once

#include "kube/published.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gpurota::kube {

// The streams of one server. Any thread.
class Streams {
 public:
  int open() const { return open_; }
  // Ends all streams soon; call it before the server ends.
  void end() { ending_ = true; }

  // Sends values until the other side or end() ends the stream. `message_of(value, since)` makes
  // the message; `since` is when the value was last published. With a nonzero `again`, an unchanged
  // value is also repeated, once it is published again at least `again` after the publication that
  // was sent last. False: there are too many streams.
  template <class Value, class Context, class Writer, class MessageOf>
  bool tell(const Published<Value>& published, const Context& context, Writer& writer,
            MessageOf message_of, std::chrono::milliseconds again = {}) {
    const Open open(open_);
    if (open_ > kMost) return false;
    std::uint64_t version = 0;
    std::chrono::steady_clock::time_point sent;
    while (!ending_ && !context.IsCancelled()) {
      const auto seen = published.wait(version, kCheckEvery);
      // Repeat a value only if it was published again.
      const bool is_due = again.count() > 0 && seen.said - sent >= again;
      if (!seen.value || (seen.version == version && !is_due)) continue;
      version = seen.version;
      sent = seen.said;
      if (!writer.Write(message_of(*seen.value, seen.said))) break;
    }
    return true;
  }

 private:
  // The time between two checks for a cancelled stream.
  static constexpr std::chrono::milliseconds kCheckEvery{500};
  // Kubelet opens one stream for each registration. A client that opens more is not kubelet.
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
