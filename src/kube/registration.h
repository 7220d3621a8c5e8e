// Decides when a resource must be served or registered again, from the state of kubelet's folder
// and of our own sockets. Pure.
//
// Kubelet removes all sockets of the folder when it starts, so a missing socket is served again.
// Kubelet leaves its own socket behind when it ends: an existing socket means nothing, but a
// different one means that kubelet has started. Kubelet may also drop a plugin silently (when an
// earlier one for the same resource ends): a plugin without a stream registers again.
#pragma once

#include "core/time.h"

#include <cstdint>
#include <optional>

namespace gpurota::kube {

// Distinguishes one kubelet.sock from a later one at the same path.
struct SocketId {
  std::uint64_t device = 0, inode = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const SocketId&) const = default;
};

struct RegistrationFacts {
  std::optional<SocketId> kubelet;  // empty: there is no kubelet
  bool served = false;              // our socket exists, and we listen there
  int streams = 0;                  // streams that kubelet has open
};

class Registration {
 public:
  enum class Step { kNothing, kServe, kRegister };

  // The next step. Call it periodically, and when the folder has changed. After kServe and
  // kRegister report the result.
  Step next(const RegistrationFacts& facts, TimePoint now);
  void on_served() { registered_with_.reset(); }
  void on_registered(const SocketId& kubelet, TimePoint now);
  void on_refused(TimePoint now);
  bool is_registered() const { return registered_with_.has_value(); }

 private:
  std::optional<SocketId> registered_with_;
  TimePoint lonely_since_{};  // since then without a stream
  TimePoint try_at_{};
  Duration pause_{};
};

}  // namespace gpurota::kube
