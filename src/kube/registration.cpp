#include "kube/registration.h"

#include <algorithm>

namespace gpurota::kube {
namespace {

// Kubelet opens its stream within a second of a registration, and a new stream within the same time
// after the last has ended.
constexpr Duration kLonely = std::chrono::seconds(5);
constexpr Duration kFirstPause = std::chrono::milliseconds(500),
                   kLongestPause = std::chrono::seconds(10);

}  // namespace

Registration::Step Registration::next(const RegistrationFacts& facts, TimePoint now) {
  if (facts.streams > 0) lonely_since_ = now;
  if (!facts.served) return Step::kServe;
  if (!facts.kubelet) return Step::kNothing;
  const bool known = registered_with_ == facts.kubelet;
  const bool lonely = now - lonely_since_ >= kLonely;
  if ((known && !lonely) || now < try_at_) return Step::kNothing;
  return Step::kRegister;
}

void Registration::on_registered(const SocketId& kubelet, TimePoint now) {
  registered_with_ = kubelet;
  lonely_since_ = now;
  pause_ = {};
}

void Registration::on_refused(TimePoint now) {
  registered_with_.reset();
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  try_at_ = now + pause_;
}

}  // namespace gpurota::kube
