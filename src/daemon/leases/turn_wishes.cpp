#include "daemon/leases/turn_wishes.h"

#include "base/text.h"
#include "core/compute_share.h"

#include <fmt/format.h>

namespace gpurota::daemon {
namespace {

constexpr int kMostPriority = 100;
// The longest turn that the scheduler derives from measured costs (sched::Settings::most_quantum).
constexpr std::chrono::minutes kMostQuantum{5};

}  // namespace

Result<int> read_priority(std::optional<int> said) {
  const int priority = said.value_or(0);
  if (priority < -kMostPriority || priority > kMostPriority) {
    return fail(Code::kInvalid, "a priority is a number from -100 to 100");
  }
  return priority;
}

Result<std::optional<std::chrono::milliseconds>> read_quantum(
    const std::optional<std::string>& said, bool administrator) {
  using Quantum = std::optional<std::chrono::milliseconds>;
  if (!said) return Quantum();
  const auto quantum = config::parse_quantum(*said);
  if (!quantum) return fail(Code::kInvalid, "quantum: " + quantum.error().message);
  if (*quantum > kMostQuantum && !administrator) {
    return fail(
        Code::kLimit,
        "the turns of a lease last 5 min at most, since others wait for them: ask for less, "
        "or for \"auto\" (administrators may set up to 1 h)");
  }
  return Quantum(*quantum);
}

Result<std::optional<LatencyClass>> read_latency(const std::optional<std::string>& said) {
  using Latency = std::optional<LatencyClass>;
  if (!said) return Latency();
  const Latency latency = parse_latency_class(*said);
  if (latency) return latency;
  return fail(Code::kInvalid, fmt::format("'{}' is not a latency: write normal or interactive",
                                          display_text(*said, 40)));
}

Result<void> check_latency(const AcquireRequest& request) {
  const lease::PlacementRequest& placement = request.placement;
  return gpurota::check_latency(request.latency, {placement.memory.has_value() || placement.swap,
                                                  request.kind == LeaseKind::kFiller});
}

bool can_have(const Lease& lease, LatencyClass latency) {
  return gpurota::check_latency(latency, {!lease.exclusive(), lease.kind == LeaseKind::kFiller})
      .has_value();
}

ComputeShare changed_share(ComputeShare share, std::optional<int> least, std::optional<int> most) {
  if (least) share.least = *least;
  if (most) share.most = compute_bound(*most);
  return share;
}

Result<void> check_compute(const AcquireRequest& request) {
  const lease::PlacementRequest& placement = request.placement;
  return check_compute_share(
      placement.compute,
      {.limited = placement.memory.has_value(),
       .swap = placement.swap,
       .filler = request.kind == LeaseKind::kFiller,
       .interactive = request.latency == LatencyClass::kInteractive,
       .gpus = placement.gpus.empty() ? placement.count : static_cast<int>(placement.gpus.size())});
}

Result<void> check_compute(const Lease& lease, const ComputeShare& share) {
  return check_compute_share(share, {.limited = !lease.exclusive(),
                                     .swap = lease.swap(),
                                     .filler = lease.kind == LeaseKind::kFiller,
                                     .interactive = lease.latency == LatencyClass::kInteractive,
                                     .gpus = static_cast<int>(lease.gpus.size())});
}

Result<void> check_soft_limit(const config::SoftLimit& site, bool swap) {
  if (swap || site.policy != config::SoftLimit::Policy::kEvict) return {};
  return fail(
      Code::kInvalid,
      "the site moves memory above a soft limit to host memory ([soft_limit] policy = \"evict\"), "
      "which a slice does not allow: leave out --soft-limit, or take turns with "
      "--swap");
}

}  // namespace gpurota::daemon
