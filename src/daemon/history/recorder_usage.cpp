// Reading who used how much: the other part of recorder.cpp.
#include "daemon/history/recorder.h"

#include <chrono>

namespace gpurota::daemon {
namespace {

// What is in the store is as of now.
constexpr Duration kFresh = std::chrono::milliseconds(500);

}  // namespace

// Not for every call: it is a write.
void Recorder::store_usage() {
  if (parts_.loop.now() - usage_written_ >= kFresh || closed_usage_) write(true);
}

Result<std::vector<ports::StoredUsage>> Recorder::UsageReader::next(std::size_t most) {
  if (!recorder_.parts_.history) return std::vector<ports::StoredUsage>();
  auto rows = recorder_.parts_.history->read_usage(*upto_, most);
  if (rows && !rows->empty()) *upto_ = rows->back().lease;
  return rows;
}

std::vector<LeaseId> Recorder::readers() {
  std::erase_if(readers_, [](const auto& reader) { return reader.expired(); });
  std::vector<LeaseId> all;
  for (const auto& reader : readers_) {
    if (const auto upto = reader.lock()) all.push_back(*upto);
  }
  return all;
}

Result<std::vector<ports::UsageSum>> Recorder::usage_of(uid_t uid, WallTime since, WallTime until) {
  if (!parts_.history) return std::vector<ports::UsageSum>();
  store_usage();
  return parts_.history->sum_usage_of(uid, since, until);
}

}  // namespace gpurota::daemon
