#include "daemon/history/usage_reader.h"

namespace gpurota::daemon {

std::shared_ptr<LeaseId> UsageReaders::add() {
  auto upto = std::make_shared<LeaseId>();
  readers_.push_back(upto);
  return upto;
}

std::vector<LeaseId> UsageReaders::upto() {
  std::erase_if(readers_, [](const auto& reader) { return reader.expired(); });
  std::vector<LeaseId> all;
  for (const auto& reader : readers_) {
    if (const auto upto = reader.lock()) all.push_back(*upto);
  }
  return all;
}

Result<std::vector<ports::StoredUsage>> UsageReader::next(std::size_t most) {
  if (!history_) return std::vector<ports::StoredUsage>();
  auto rows = history_->read_usage(*upto_, most);
  if (rows && !rows->empty()) *upto_ = rows->back().lease;
  return rows;
}

}  // namespace gpurota::daemon
