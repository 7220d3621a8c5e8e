#include "daemon/leases/kept_clocks.h"

#include <algorithm>

namespace gpurota::daemon {

void KeptClocks::restore() {
  counted_at_ = stored_at_ = parts_.loop.now();
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    parts_.keeping.restore(gpu.info.uuid, parts_.states.of(gpu.info.uuid).kept);
  }
}

void KeptClocks::count(const std::function<void(RequestId)>& store) {
  const TimePoint now = parts_.loop.now();
  const auto passed = std::chrono::floor<std::chrono::milliseconds>(now - counted_at_);
  if (passed <= std::chrono::milliseconds(0)) return;
  parts_.keeping.pass(facts_, passed);
  counted_at_ += passed;
  if (now - stored_at_ < kStoreEvery) return;
  stored_at_ = now;
  for (const RequestId request : facts_.blocked) store(request);
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    parts_.states.set_kept(gpu.info.uuid, parts_.keeping.kept(gpu.info.uuid));
  }
}

void KeptClocks::on_start(RequestId request, const std::vector<LeaseGpu>& gpus) {
  std::vector<GpuUuid> uuids;
  for (const LeaseGpu& share : gpus) uuids.push_back(share.uuid);
  parts_.keeping.on_start(request, uuids, facts_);
}

std::optional<Duration> KeptClocks::next() const {
  std::optional<Duration> first;
  if (const auto change = parts_.keeping.next_change(facts_)) first = *change;
  if (!facts_.blocked.empty()) first = std::min(first.value_or(kStoreEvery), kStoreEvery);
  return first;
}

}  // namespace gpurota::daemon
