#include "daemon/watch/hidden_reckoner.h"

#include "daemon/gpus/gpu_settings.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// A change by less is not worth storing: a baseline moves with every reading.
constexpr Bytes kLeastChange = mib(32);

}  // namespace

void HiddenReckoner::restore() {
  const std::string boot = parts_.processes.boot_id();
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    // Another boot may be with another driver: a doubt is for giving.
    const auto& stored = parts_.states.of(gpu.info.uuid).baseline;
    if (stored && stored->boot_id == boot) memory_.restore(gpu.info.uuid, stored->bytes);
  }
}

void HiddenReckoner::store_baseline(const watch::Look& look) {
  const std::optional<Bytes> measured = memory_.measured(look.gpu, look.size);
  if (!measured) return;
  const auto& stored = parts_.states.of(look.gpu).baseline;
  if (stored && stored->boot_id == parts_.processes.boot_id()) {
    const auto [less, more] = std::minmax(stored->bytes, *measured);
    if (more - less < kLeastChange) return;
  }
  parts_.states.set_baseline(look.gpu, {*measured, parts_.processes.boot_id()});
}

watch::HiddenRules HiddenReckoner::rules(const GpuUuid& gpu) const {
  watch::HiddenRules rules;
  rules.threshold = parts_.config.unreserved_threshold;
  if (const GpuEntry* const entry = parts_.gpus.find(gpu)) {
    rules.unlisted = unlisted_of(entry->info, parts_.config.gpus);
  }
  return rules;
}

bool HiddenReckoner::prepare(watch::Look& look, bool settled) const {
  const GpuEntry* const gpu = parts_.gpus.find(look.gpu);
  // What its instances use the driver counts on the whole GPU a second time.
  if (!gpu || gpu->info.mig_enabled) return false;
  look.size = gpu->info.memory;
  if (parts_.counted_again) look.counted_again = parts_.counted_again(look.gpu);
  for (watch::SeenLease& lease : look.leases) {
    const LeaseEntry* const entry = parts_.leases.find(lease.id);
    const LeaseGpu* const share = entry ? entry->lease.find_gpu(look.gpu) : nullptr;
    if (!share || !parts_.charge_of) continue;
    const LeaseCharge charge = parts_.charge_of(lease.id, *share);
    lease.charge = charge.bytes;
    lease.moving = charge.moving || !settled;
  }
  return true;
}

void HiddenReckoner::read(watch::Look& look, bool settled, TimePoint now) {
  if (!prepare(look, settled)) return;
  look.hidden = memory_.read(look, rules(look.gpu), now);
  store_baseline(look);
}

void HiddenReckoner::after_change(watch::Look& look, bool settled, TimePoint now) {
  if (prepare(look, settled)) look.hidden = memory_.after_change(look, rules(look.gpu), now);
}

}  // namespace gpurota::daemon
