// Reads all usage in pieces. Usage that changes meanwhile is counted once. State thread only.
#pragma once

#include "base/result.h"
#include "ports/history.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace gpurota::daemon {

// The last lease that each reader of usage has read.
class UsageReaders {
 public:
  std::shared_ptr<LeaseId> add();
  std::vector<LeaseId> upto();

 private:
  std::vector<std::weak_ptr<const LeaseId>> readers_;
};

class UsageReader {
 public:
  // `history`: null: there is nothing to read.
  UsageReader(ports::History* history, UsageReaders& readers)
      : history_(history), upto_(readers.add()) {}

  bool has_begun() const { return *upto_ != LeaseId{}; }
  Result<std::vector<ports::StoredUsage>> next(std::size_t most);

 private:
  ports::History* history_;
  std::shared_ptr<LeaseId> upto_;
};

}  // namespace gpurota::daemon
