// When a resource has to be served or registered anew: pure decisions from what is seen of
// kubelet's folder and of our own sockets.
//
// Kubelet removes all sockets of the folder when it starts, so one that is gone is served again; it
// leaves its own behind when it ends, so that this is there says nothing, and that it is another
// says that it has started. And it may forget a plugin without a word (when one that was registered
// before for the same resource goes): a plugin that nobody listens to registers again.
#pragma once

#include "core/time.h"

#include <cstdint>
#include <optional>

namespace gpurota::kube {

// Tells one kubelet.sock from another at the same place.
struct SocketId {
  std::uint64_t device = 0, inode = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const SocketId&) const = default;
};

struct RegistrationFacts {
  std::optional<SocketId> kubelet;  // none: there is no kubelet
  bool served = false;              // our socket is at its place, and we listen there
  int streams = 0;                  // kubelet listens to us
};

class Registration {
 public:
  enum class Step { kNothing, kServe, kRegister };

  // Call now and then, and when the folder has changed. After kServe and kRegister it is to be told
  // what came of it.
  Step next(const RegistrationFacts& facts, TimePoint now);
  void on_served() { registered_with_.reset(); }
  void on_registered(const SocketId& kubelet, TimePoint now);
  void on_refused(TimePoint now);
  bool is_registered() const { return registered_with_.has_value(); }

 private:
  std::optional<SocketId> registered_with_;
  TimePoint lonely_since_{};  // no stream since then
  TimePoint try_at_{};
  Duration pause_{};
};

}  // namespace gpurota::kube
