#include "daemon/watch/limit_setter.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

constexpr const char* kLimitsFirstLine = "gpurota driver limits 1";
constexpr std::size_t kMostLimitBytes = std::size_t{4} << 20;
// A driver may round a limit to its pages, so gpurota sets only what needs no rounding.
constexpr std::uint64_t kDriverPage = std::uint64_t{2} << 20;

}  // namespace

Bytes driver_limit(Bytes limit, Bytes memory) {
  const Bytes allowance = std::max(mib(512), Bytes(limit.count() / 16));
  const std::uint64_t pages = ((limit + allowance).count() + kDriverPage - 1) / kDriverPage;
  return std::min(Bytes(pages * kDriverPage), memory);
}

LimitRound LimitSetter::carry_out(const Wanted& wanted, const Machine& machine) {
  LimitRound round;
  load(round);
  if (machine.driver != driver_) unsupported_.clear();
  driver_ = machine.driver;
  // The answer for a GPU that left, for example as it was divided by MIG, may be another later.
  std::erase_if(unsupported_, [&](const auto& each) {
    return std::none_of(machine.gpus.begin(), machine.gpus.end(),
                        [&](const GpuInfo& gpu) { return gpu.uuid == each.first; });
  });
  for (const GpuInfo& gpu : machine.gpus) {
    if (!unsupported_.contains(gpu.uuid)) examine(gpu, machine.own_group, round);
    if (unsupported_.contains(gpu.uuid)) {
      skip(gpu, wanted, round);
      continue;
    }
    const auto own = own_;  // is changed below
    for (const auto& [place, values] : own) {
      if (place.gpu == gpu.uuid && !wanted.contains(place)) remove(place, gpu, round);
    }
    for (const auto& [place, hard] : wanted) {
      if (place.gpu != gpu.uuid) continue;
      LimitFound found = settle(place, hard, gpu, round);
      found.below = below(gpu, place.group);
      round.found[place] = std::move(found);
    }
  }
  round.unsupported = unsupported_;
  save(round);
  return round;
}

// Limits that an earlier driver had are gone with it.
void LimitSetter::skip(const GpuInfo& gpu, const Wanted& wanted, LimitRound& round) {
  std::erase_if(own_, [&gpu](const auto& each) { return each.first.gpu == gpu.uuid; });
  const Error error{Code::kUnavailable, 0, unsupported_.at(gpu.uuid)};
  for (const auto& [place, hard] : wanted) {
    if (place.gpu == gpu.uuid) round.found[place] = {.hard = std::nullopt, .error = error};
  }
}

void LimitSetter::examine(const GpuInfo& gpu, const std::string& own_group, LimitRound& round) {
  if (own_group.empty()) return;
  const auto limits = probe_->read_memory_limits(gpu, own_group);
  if (!limits && limits.error().code == Code::kUnavailable) {
    unsupported_[gpu.uuid] = limits.error().message;
    return;
  }
  if (limits && limits->hard) {
    round.daemon_in = {own_group, gpu.uuid};
  } else if (const auto found = above(gpu, own_group)) {
    round.daemon_in = {found->group, gpu.uuid};
  }
}

std::optional<Bytes> LimitSetter::others_limit(const GpuInfo& gpu, const std::string& group) const {
  const auto limits = probe_->read_memory_limits(gpu, group);
  if (!limits || !limits->hard) return std::nullopt;  // also folders that are no control groups
  const auto known = own_.find({group, gpu.uuid});
  const bool ours = known != own_.end() && known->second.contains(*limits->hard);
  return ours ? std::nullopt : limits->hard;
}

std::optional<OthersLimit> LimitSetter::above(const GpuInfo& gpu, std::string group) const {
  std::optional<OthersLimit> smallest;
  for (std::size_t slash = group.rfind('/'); slash != group.npos && slash > 0;
       slash = group.rfind('/')) {
    group.resize(slash);
    const auto hard = others_limit(gpu, group);
    if (hard && (!smallest || *hard < smallest->hard)) smallest = OthersLimit{group, *hard};
  }
  return smallest;
}

std::vector<OthersLimit> LimitSetter::below(const GpuInfo& gpu, const std::string& group) const {
  std::vector<OthersLimit> found;
  std::vector<std::string> groups{group};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::error_code error;
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator each(groups[i], error);
         !error && each != end && groups.size() <= kMostBelow; each.increment(error)) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(each->symlink_status(ignored))) continue;
      groups.push_back(each->path().string());
      if (const auto hard = others_limit(gpu, groups.back())) {
        found.push_back({groups.back(), *hard});
      }
    }
  }
  return found;
}

void LimitSetter::remove(const LimitPlace& place, const GpuInfo& gpu, LimitRound& round) {
  const auto limits = probe_->read_memory_limits(gpu, place.group);
  const bool ours = limits && limits->hard && own_[place].contains(*limits->hard);
  auto removed = limits ? Result<void>() : tl::unexpected<Error>(limits.error());
  if (ours) removed = probe_->set_memory_limit(gpu, place.group, std::nullopt);
  // A limit is gone when its group is gone.
  if (removed || removed.error().code == Code::kGone) {
    own_.erase(place);
  } else {
    round.problems.push_back(
        fmt::format("cannot remove the limit of {}: {}", place.group, removed.error().message));
  }
}

LimitFound LimitSetter::settle(const LimitPlace& place, Bytes hard, const GpuInfo& gpu,
                               LimitRound& round) {
  const auto limits = probe_->read_memory_limits(gpu, place.group);
  if (!limits) return {.hard = std::nullopt, .error = limits.error()};
  const auto known = own_.find(place);
  const bool ours = limits->hard && known != own_.end() && known->second.contains(*limits->hard);
  const auto higher = above(gpu, place.group);
  if (limits->hard && !ours) {
    own_.erase(place);
    if (higher && higher->hard < *limits->hard) return {higher->hard, higher->group};
    return {limits->hard, place.group};
  }
  // A driver that does not nest limits would apply gpurota's limit instead of the smaller limit of
  // the group above.
  if (higher && higher->hard <= hard) {
    if (known != own_.end()) remove(place, gpu, round);
    return {higher->hard, higher->group};
  }
  if (limits->hard == hard) return {hard};
  if (const auto done = set(place, hard, gpu, round); !done) {
    return {.hard = limits->hard, .error = done.error()};
  }
  return {hard};
}

Result<void> LimitSetter::set(const LimitPlace& place, Bytes hard, const GpuInfo& gpu,
                              LimitRound& round) {
  own_[place].insert(hard);
  save(round);
  GPUROTA_TRY(probe_->set_memory_limit(gpu, place.group, hard));
  const auto limits = probe_->read_memory_limits(gpu, place.group);
  if (limits && limits->hard != hard) {
    // Record the value that the driver has made of gpurota's limit, so that this limit is still
    // known as gpurota's.
    if (limits->hard) own_[place].insert(*limits->hard);
    return fail(Code::kUnavailable,
                fmt::format("the driver was given a limit of {} and has {}", to_string(hard),
                            limits->hard ? to_string(*limits->hard) : std::string("none")));
  }
  own_[place] = {hard};
  return {};
}

// Each line: a GPU, a number of bytes, and the group's directory.
void LimitSetter::load(LimitRound& round) {
  if (std::exchange(loaded_, true) || file_.empty()) return;
  const Fd fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ENOENT) return;
  const auto text = fd ? read_all(fd.get(), kMostLimitBytes) : std::nullopt;
  std::istringstream lines(text.value_or(""));
  std::string line;
  if (!std::getline(lines, line) || line != kLimitsFirstLine) {
    round.problems.push_back(fmt::format(
        "{} cannot be read: limits that the last gpurotad set count as somebody else's", file_));
    return;
  }
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    LimitPlace place;
    std::uint64_t hard = 0;
    if (words >> place.gpu.value >> hard && words.get() == ' ' &&
        std::getline(words, place.group)) {
      own_[place].insert(Bytes(hard));
    }
  }
}

void LimitSetter::save(LimitRound& round) {
  if (file_.empty()) return;
  if (own_.empty()) {
    (void)::unlink(file_.c_str());
    return;
  }
  std::string text = fmt::format("{}\n", kLimitsFirstLine);
  for (const auto& [place, values] : own_) {
    for (const Bytes value : values) {
      text += fmt::format("{} {} {}\n", place.gpu.value, value.count(), place.group);
    }
  }
  if (const auto written = replace_file(file_, text, 0600); !written) {
    round.problems.push_back(written.error().message);
  }
}

}  // namespace gpurota::daemon
