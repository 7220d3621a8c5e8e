#include "daemon/watch/hidden_reckoner.h"

#include "daemon/gpus/gpu_settings.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Smaller changes are not stored, as each reading changes the baseline a little.
constexpr Bytes kLeastChange = mib(32);

}  // namespace

void HiddenReckoner::restore() {
  const std::string boot = parts_.processes.boot_id();
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    // A baseline of another boot is ignored, as the driver may have changed since.
    const auto& stored = parts_.states.of(gpu.info.uuid).baseline;
    if (stored && stored->boot_id == boot) memory_.restore(gpu.info.uuid, stored->bytes);
  }
}

void HiddenReckoner::store_baseline(const watch::Reading& reading) {
  const std::optional<Bytes> measured = memory_.measured(reading.gpu, reading.size);
  if (!measured) return;
  const auto& stored = parts_.states.of(reading.gpu).baseline;
  if (stored && stored->boot_id == parts_.processes.boot_id()) {
    const auto [less, more] = std::minmax(stored->bytes, *measured);
    if (more - less < kLeastChange) return;
  }
  parts_.states.set_baseline(reading.gpu, {*measured, parts_.processes.boot_id()});
}

watch::HiddenRules HiddenReckoner::rules(const GpuUuid& gpu) const {
  watch::HiddenRules rules;
  rules.threshold = parts_.config.unreserved_threshold;
  if (const GpuEntry* const entry = parts_.gpus.find(gpu)) {
    rules.unlisted = unlisted_of(entry->info, parts_.config.gpus);
  }
  return rules;
}

bool HiddenReckoner::prepare(watch::Reading& reading, bool settled) const {
  const GpuEntry* const gpu = parts_.gpus.find(reading.gpu);
  // The driver counts the use of MIG instances a second time on the whole GPU.
  if (!gpu || gpu->info.mig_enabled) return false;
  reading.size = gpu->info.memory;
  if (parts_.counted_again) reading.counted_again = parts_.counted_again(reading.gpu);
  for (watch::SeenLease& lease : reading.leases) {
    const LeaseEntry* const entry = parts_.tables.find(lease.id);
    const LeaseGpu* const share = entry ? entry->lease.find_gpu(reading.gpu) : nullptr;
    if (!share || !parts_.charge_of) continue;
    const LeaseCharge charge = parts_.charge_of(lease.id, *share);
    lease.charge = charge.bytes;
    lease.moving = charge.moving || !settled;
  }
  return true;
}

void HiddenReckoner::read(watch::Reading& reading, bool settled, TimePoint now) {
  if (!prepare(reading, settled)) return;
  reading.hidden = memory_.read(reading, rules(reading.gpu), now);
  store_baseline(reading);
}

void HiddenReckoner::after_change(watch::Reading& reading, bool settled, TimePoint now) {
  if (prepare(reading, settled))
    reading.hidden = memory_.after_change(reading, rules(reading.gpu), now);
}

}  // namespace gpurota::daemon
