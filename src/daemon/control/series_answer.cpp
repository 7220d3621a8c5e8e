#include "daemon/control/series_answer.h"

#include "base/steps.h"
#include "lease/gpu_selector.h"
#include "proto/codec.h"
#include "series/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::daemon {
namespace {

using series::Entry;

constexpr auto kUsualSpan = std::chrono::minutes(15);
constexpr std::int64_t kUsualPoints = 600;
constexpr std::int64_t kFewestPoints =
    2;  // points begin at multiples of their length, so one point cannot cover every span
constexpr std::int64_t kMostPoints = 1000;
// Points of all series together: some megabytes of text.
constexpr std::size_t kMostInAll = 6000;
constexpr std::size_t kMostSeries = 32;
// Steps that a piece reads, or points that a piece writes.
constexpr std::int64_t kStepsInAPiece = 100;

std::optional<int> whole(const Entry& entry, std::size_t column, std::uint64_t divisor = 1,
                         int factor = 1) {
  const auto value = entry.value(column);
  if (!value) return std::nullopt;
  return static_cast<int>((*value + divisor / 2) / divisor) * factor;
}

std::optional<Bytes> memory(const Entry& entry, std::size_t column) {
  const auto value = entry.value(column);
  return value ? std::optional(mib(*value)) : std::nullopt;
}

proto::GpuPoint gpu_point(const series::Point& point) {
  const Entry& entry = point.entry;
  proto::GpuPoint shown;
  shown.time = point.begins;
  shown.seconds = entry.seconds;
  shown.utilisation_percent = whole(entry, series::kLoad, 10);
  shown.max_utilisation_percent = whole(entry, series::kMaxLoad, 10);
  shown.used_bytes = memory(entry, series::kMemory);
  shown.max_used_bytes = memory(entry, series::kMaxMemory);
  shown.power_mw = whole(entry, series::kPower, 1, 100);
  shown.max_power_mw = whole(entry, series::kMaxPower, 1, 100);
  shown.temperature_celsius = whole(entry, series::kHeat, 10);
  shown.max_temperature_celsius = whole(entry, series::kMaxHeat, 10);
  shown.sm_clock_mhz = whole(entry, series::kClock);
  if (const auto limits = entry.value(series::kLimits)) {
    shown.clock_limits = clock_limit_words(*limits);
  }
  shown.ecc_uncorrected = entry.value(series::kEcc);
  shown.xid_errors = entry.value(series::kXid);
  if (const auto holder = entry.value(series::kHolder)) shown.turn = LeaseId{*holder};
  return shown;
}

proto::LeasePoint lease_point(const series::Point& point) {
  const Entry& entry = point.entry;
  proto::LeasePoint shown;
  shown.time = point.begins;
  shown.seconds = entry.seconds;
  shown.used_bytes = memory(entry, series::kUsed);
  shown.max_used_bytes = memory(entry, series::kMaxUsed);
  shown.sm_percent = whole(entry, series::kSm, 10);
  shown.max_sm_percent = whole(entry, series::kMaxSm, 10);
  shown.evictions = entry.value(series::kEvictions);
  if (const auto waited = entry.value(series::kWaited)) {
    shown.waited_ms = static_cast<std::int64_t>(*waited);
  }
  return shown;
}

class SeriesAnswer final : public LongAnswer {
 public:
  SeriesAnswer(const SeriesKeeper& keeper, const series::Plan& plan, proto::History::Reply reply)
      : reply_(std::move(reply)), reader_(keeper.rings(), plan, subjects(reply_)) {}

  std::optional<std::string> go_on() override {
    if (reading_) {
      reading_ = reader_.go_on(kStepsInAPiece);
      return std::nullopt;
    }
    const std::size_t all = reply_.gpus.size() + reply_.leases.size();
    if (at_ < all) {
      if (at_ < reply_.gpus.size()) {
        const proto::GpuHistory& gpu = reply_.gpus[at_];
        add(gpu, reader_.points(series::subject_of(gpu.gpu_uuid)), gpu_point, gpus_);
      } else {
        const proto::LeaseHistory& lease = reply_.leases[at_ - reply_.gpus.size()];
        add(lease, reader_.points(series::subject_of(lease.lease_id)), lease_point, leases_);
      }
      return std::nullopt;
    }
    reply_.gpus.clear();
    reply_.leases.clear();
    std::string text = proto::with_items(proto::reply_json<proto::History>(reply_), "gpus", gpus_);
    return proto::with_items(std::move(text), "leases", leases_);
  }

 private:
  // Writes some more points of this series. After the last point, adds the series to `list`.
  template <class Series, class Make>
  void add(const Series& of, const std::vector<series::Point>& points, Make make,
           std::string& list) {
    for (std::int64_t i = 0; i < kStepsInAPiece && next_ < points.size(); ++i, ++next_) {
      const std::string item = proto::item_json(make(points[next_]));
      if (!items_.empty()) items_ += ',';
      items_ += item;
      steps::add(steps::Kind::kBytes, item.size());
    }
    if (next_ < points.size()) return;
    if (!list.empty()) list += ',';
    list += proto::with_items(proto::item_json(of), "points", items_);
    next_ = 0;
    items_.clear();
    ++at_;
  }

  static std::set<series::Subject> subjects(const proto::History::Reply& reply) {
    std::set<series::Subject> all;
    for (const proto::GpuHistory& gpu : reply.gpus) all.insert(series::subject_of(gpu.gpu_uuid));
    for (const auto& lease : reply.leases) all.insert(series::subject_of(lease.lease_id));
    return all;
  }

  proto::History::Reply reply_;
  series::RangeReader reader_;
  bool reading_ = true;
  std::size_t at_ = 0;             // the series that is next: GPUs, then leases
  std::size_t next_ = 0;           // the next point of that series
  std::string items_{};            // earlier points of that series, as JSON
  std::string gpus_{}, leases_{};  // finished series, as JSON
};

Result<void> check(const proto::History& call, const proto::History::Reply& reply) {
  if (reply.since > reply.until) {
    return fail(Code::kInvalid, "a history begins (`since`) before it ends (`until`, now)");
  }
  if (call.points && (*call.points < kFewestPoints || *call.points > kMostPoints)) {
    return fail(Code::kInvalid, fmt::format("points: {} is not from {} to {}", *call.points,
                                            kFewestPoints, kMostPoints));
  }
  if (reply.gpus.size() + reply.leases.size() > kMostSeries) {
    return fail(Code::kInvalid,
                fmt::format("{} GPUs and leases are too many at once: name at most {}",
                            reply.gpus.size() + reply.leases.size(), kMostSeries));
  }
  return {};
}

}  // namespace

std::vector<std::string> clock_limit_words(std::uint64_t limits) {
  constexpr std::pair<ClockLimit, const char*> kWords[] = {
      {ClockLimit::kPower, "power"},       {ClockLimit::kTemperature, "temperature"},
      {ClockLimit::kHardware, "hardware"}, {ClockLimit::kPowerBrake, "power_brake"},
      {ClockLimit::kSetting, "setting"},   {ClockLimit::kSync, "sync"}};
  std::vector<std::string> words;
  for (const auto& [limit, word] : kWords) {
    if ((limits & static_cast<std::uint64_t>(limit)) != 0) words.emplace_back(word);
  }
  return words;
}

Result<std::shared_ptr<LongAnswer>> make_series_answer(const proto::History& call,
                                                       const GpuTable& gpus,
                                                       const SeriesKeeper& keeper, WallTime now) {
  proto::History::Reply reply;
  reply.until = call.until.value_or(now);
  reply.since = call.since.value_or(reply.until - kUsualSpan);
  std::vector<GpuUuid> chosen;
  if (call.gpu_ids && !call.gpu_ids->empty()) {
    GPUROTA_ASSIGN_OR_RETURN(chosen, lease::select_gpus(*call.gpu_ids, gpus.infos()));
  }
  // MIG instances, which have few figures, are included only if they are named or there is room.
  const bool all = !call.gpu_ids && !call.lease_ids;
  const bool crowded = gpus.entries().size() > kMostSeries;
  for (const GpuEntry& gpu : gpus.entries()) {
    const bool named = std::find(chosen.begin(), chosen.end(), gpu.info.uuid) != chosen.end();
    const bool minor = crowded && !gpu.info.parent.value.empty();
    if (!named && (!all || minor)) continue;
    reply.gpus.push_back({gpu.info.uuid, gpus.name_of(gpu.info.uuid), {}});
  }
  if (call.lease_ids) {
    for (const LeaseId id : *call.lease_ids) reply.leases.push_back({id, {}});
  }
  GPUROTA_TRY(check(call, reply));
  const std::size_t count = std::max<std::size_t>(1, reply.gpus.size() + reply.leases.size());
  const auto asked = static_cast<std::size_t>(call.points.value_or(kUsualPoints));
  const series::Plan plan =
      series::plan(reply.since, reply.until, now, std::min(asked, kMostInAll / count));
  reply.step_seconds = plan.step().count();
  return std::make_shared<SeriesAnswer>(keeper, plan, std::move(reply));
}

}  // namespace gpurota::daemon
