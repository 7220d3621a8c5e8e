#include "daemon/tenants/held_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpurota::daemon {
namespace {

constexpr Duration kSampleEvery = std::chrono::milliseconds(200);
constexpr Duration kReportEvery = std::chrono::seconds(10);
// A lease is the subject of at most one event in this time.
constexpr Duration kQuiet = std::chrono::hours(1);
// In percent of a minute: how long work must have been held back, and how much less than its share
// a lease must have got.
constexpr int kLong = 50, kMuchLess = 5;

int percent_of(Duration part, Duration whole) {
  return whole > Duration() ? static_cast<int>(100 * part / whole) : 0;
}

std::string names_text(const std::map<LeaseId, Duration>& leases) {
  std::string text;
  for (const auto& [lease, time] : leases) {
    text += (text.empty() ? "" : ", ") + to_string(lease);
  }
  return text;
}

}  // namespace

std::string held_back_text(const Lease& lease, const std::string& gpu,
                           const std::optional<LastMinute>& latency,
                           const std::optional<LastMinute>& shares) {
  if (latency && latency->known >= kMinute && percent_of(latency->held, kMinute) >= kLong) {
    return fmt::format(
        "work of {} was held back for {} % of the last minute, because interactive leases had "
        "work: {}",
        to_string(lease.id), percent_of(latency->held, kMinute), names_text(latency->held_for));
  }
  if (!shares || shares->known < kMinute || percent_of(shares->held, kMinute) < kLong) return {};
  const int got = percent_of(shares->got.value_or(Duration()), kMinute);
  if (got + kMuchLess >= lease.compute().least) return {};
  return fmt::format(
      "{} got {} % of the compute time of GPU {} in the last minute and wanted more, but was "
      "promised {} %",
      to_string(lease.id), got, gpu, lease.compute().least);
}

std::optional<LastMinute> HeldBack::last_minute(LeaseId lease, TimePoint now) const {
  auto latency = parts_.latency.last_minute(lease, now);
  auto shares = parts_.shares.last_minute(lease);
  if (!latency || !shares) return latency ? latency : shares;
  shares->known = std::max(shares->known, latency->known);
  shares->held = std::min(shares->held + latency->held, shares->known);
  for (const auto& [other, time] : latency->held_for) {
    Duration& sum = shares->held_for[other];
    sum = std::min(sum + time, shares->known);
  }
  return shares;
}

void HeldBack::report(const Lease& lease, TimePoint now) {
  const auto before = reported_.find(lease.id);
  if (lease.gpus.empty() || (before != reported_.end() && now - before->second < kQuiet)) return;
  const std::string text = held_back_text(lease, parts_.gpus.name_of(lease.gpus.front().uuid),
                                          parts_.latency.last_minute(lease.id, now),
                                          parts_.shares.last_minute(lease.id));
  if (text.empty()) return;
  reported_[lease.id] = now;
  parts_.records.on_held_back(lease, text);
}

void HeldBack::sample(TimePoint now) {
  if (now - sampled_ < kSampleEvery) return;
  sampled_ = now;
  parts_.latency.sample(now);
  if (now - checked_ < kReportEvery) return;
  checked_ = now;
  std::erase_if(reported_, [&](const auto& each) { return !parts_.leases.find(each.first); });
  for (const auto& [id, entry] : parts_.leases.leases) report(entry.lease, now);
}

}  // namespace gpurota::daemon
