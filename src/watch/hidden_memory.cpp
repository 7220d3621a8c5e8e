#include "watch/hidden_memory.h"

#include "watch/classify.h"

#include <algorithm>

namespace gpurota::watch {
namespace {

constexpr Duration kBaselineStep = std::chrono::minutes(1);
// Use that was found continues until it is clearly below the threshold, as with other findings.
constexpr std::uint64_t kSlack = 8;  // an eighth

Bytes most_baseline(Bytes size) { return std::max(mib(512), Bytes(size.count() / 100)); }

// The driver's figure for a process, without memory that another process allocated. A driver whose
// figure is less than what is imported does not include imports.
Bytes own_memory(const SeenProcess& process) {
  const Bytes used = process.used.value_or(Bytes());
  return used >= process.imported ? used - process.imported : used;
}

// Sums over the processes of a reading, without the charges of leases.
struct Sums {
  Bytes listed;   // by all processes together
  Bytes outside;  // of `listed`: by processes of no lease
  std::map<LeaseId, Bytes> of_leases;
  bool all_known = true;  // each process has a figure
  bool computes = false;  // one of the processes does more than draw
};

Sums sums_of(const Reading& reading) {
  Sums sums;
  for (const SeenProcess& process : reading.processes) {
    sums.all_known &= process.used.has_value();
    sums.computes |= !process.graphics;
    Bytes own = own_memory(process);
    if (!process.graphics) own += kBesideProcess;
    sums.listed += own;
    if (const SeenLease* const lease = owning_lease(process, reading)) {
      sums.of_leases[lease->id] += own;
    } else {
      sums.outside += own;
    }
  }
  return sums;
}

Bytes listed_of(const Sums& sums, LeaseId lease) {
  const auto found = sums.of_leases.find(lease);
  return found == sums.of_leases.end() ? Bytes() : found->second;
}

// The memory that leases explain; memory that several leases share counts once.
struct OfLeases {
  Bytes bytes;
  bool changed = false;  // a charge differs from that of the last reading
  bool moving = false;
};

OfLeases explained_by(const Reading& reading, const Sums& sums,
                      const std::map<LeaseId, Bytes>& before, Bytes counted_again_before) {
  OfLeases sum;
  Bytes listed;
  for (const SeenLease& lease : reading.leases) {
    const auto known = before.find(lease.id);
    const Bytes charge_before = known == before.end() ? Bytes() : known->second;
    sum.changed |= lease.charge != charge_before;
    sum.moving |= lease.moving;
    sum.bytes += std::max({lease.charge, charge_before, listed_of(sums, lease.id)});
    listed += listed_of(sums, lease.id);
  }
  sum.changed |= reading.counted_again != counted_again_before;
  // Only charges count memory twice, so this subtraction never makes the result less than the
  // listed memory.
  const Bytes again = std::min(reading.counted_again, counted_again_before);
  sum.bytes = std::max(sum.bytes - again, listed);
  return sum;
}

}  // namespace

void Baseline::add_idle(Bytes unlisted, TimePoint now) {
  if (last_idle_) idle_ += now - *last_idle_;
  last_idle_ = now;
  if (minutes_.empty() || idle_ - minutes_.back().begins >= kBaselineStep) {
    minutes_.push_back({idle_, unlisted});
  } else {
    minutes_.back().least = std::min(minutes_.back().least, unlisted);
  }
  while (idle_ - minutes_.front().begins >= kBaselineOver) minutes_.pop_front();
}

void Baseline::restore(Bytes least) { minutes_.push_front({idle_, least}); }

std::optional<Bytes> Baseline::measured() const {
  std::optional<Bytes> least;
  for (const Minute& minute : minutes_)
    least = std::min(least.value_or(minute.least), minute.least);
  return least;
}

Bytes Baseline::value(Bytes most) const { return std::min(most, measured().value_or(most)); }

std::optional<Bytes> HiddenMemory::measured(const GpuUuid& gpu, Bytes size) const {
  const auto known = gpus_.find(gpu);
  if (known == gpus_.end() || !known->second.baseline.measured()) return std::nullopt;
  return known->second.baseline.value(most_baseline(size));
}

Bytes HiddenMemory::baseline(const GpuUuid& gpu, Bytes size) const {
  const auto known = gpus_.find(gpu);
  return known == gpus_.end() ? most_baseline(size)
                              : known->second.baseline.value(most_baseline(size));
}

Hidden HiddenMemory::read(const Reading& reading, const HiddenRules& rules, TimePoint now) {
  Gpu& gpu = gpus_[reading.gpu];
  const Sums sums = sums_of(reading);
  if (reading.leases.empty() && !sums.computes && sums.all_known && reading.used) {
    gpu.baseline.add_idle(*reading.used - sums.listed, now);
  } else {
    gpu.baseline.add_busy();
  }
  const Hidden hidden = judge(gpu, reading, rules, now);
  gpu.charges.clear();
  for (const SeenLease& lease : reading.leases) gpu.charges[lease.id] = lease.charge;
  gpu.counted_again = reading.counted_again;
  return hidden;
}

Hidden HiddenMemory::after_change(const Reading& reading, const HiddenRules& rules, TimePoint now) {
  return judge(gpus_[reading.gpu], reading, rules, now);
}

Hidden HiddenMemory::judge(Gpu& gpu, const Reading& reading, const HiddenRules& rules,
                           TimePoint now) const {
  const Sums sums = sums_of(reading);
  const bool whole = std::any_of(reading.leases.begin(), reading.leases.end(),
                                 [](const SeenLease& lease) { return !lease.limit; });
  if (whole || !sums.all_known || !reading.used) {
    gpu.bytes = Bytes();
    gpu.much_since.reset();
    gpu.in_use = false;
    return {};
  }
  const Bytes normal = rules.unlisted.value_or(gpu.baseline.value(most_baseline(reading.size)));
  const OfLeases leases = explained_by(reading, sums, gpu.charges, gpu.counted_again);
  const Bytes reckoned = *reading.used - leases.bytes - sums.outside - normal;
  if (leases.moving || leases.changed) {
    // A new figure cannot be trusted now. The last figure is kept, but is at most the memory that
    // no listed process explains. If nothing is moving, memory beyond the highest charges that the
    // leases may have had is certainly hidden memory, left by an ended lease.
    const Bytes most = *reading.used - sums.listed - normal;
    const Bytes least = leases.moving ? Bytes() : reckoned;
    gpu.bytes = std::max(least, std::min(gpu.bytes, most));
  } else {
    gpu.bytes = reckoned;
  }
  Bytes much = std::max(rules.threshold, kLeastHiddenUse);
  if (gpu.in_use) much -= Bytes(much.count() / kSlack);
  if (gpu.bytes <= much) {
    gpu.much_since.reset();
  } else if (!gpu.much_since) {
    gpu.much_since = now;
  }
  gpu.in_use = gpu.much_since && now - *gpu.much_since >= kHiddenLeaves;
  Hidden hidden;
  hidden.is_known = true;
  if (gpu.bytes > kHiddenNoise) hidden.bytes = gpu.bytes;
  hidden.is_leaving = gpu.much_since && !gpu.in_use;
  hidden.in_use = gpu.in_use;
  return hidden;
}

}  // namespace gpurota::watch
