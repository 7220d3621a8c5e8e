// Rows of usage added up for a report, a piece at a time. Pure; state thread only.
#pragma once

#include "core/time.h"
#include "ports/history.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

class UsageSums {
 public:
  struct Asked {
    ports::UsageBy by = ports::UsageBy::kUser;
    WallTime since, until;
  };
  struct Sum {
    std::uint64_t leases = 0;
    double gpu_ms = 0;
    double mib_ms = 0;
    double busy_ms = 0;
    double idle_ms = 0;
    LeaseId last{};  // the lease that was counted last
  };
  // A user, and the value that the report is grouped by: "" for kUser, nullopt for a hidden note.
  using Key = std::pair<uid_t, std::optional<std::string>>;

  // `hides`: whether the reader may not see this user's notes.
  UsageSums(Asked asked, std::function<bool(uid_t)> hides)
      : asked_(asked), hides_(std::move(hides)) {}

  // Adds all rows of some leases. These leases must come after the leases of earlier calls. A row
  // that is only partly within the time of the report counts with that part.
  void add(const std::vector<ports::StoredUsage>& rows);
  const std::map<Key, Sum>& sums() const { return sums_; }
  // Removes one of the sums and returns it. Empty: there are none.
  std::optional<std::pair<Key, Sum>> take();

 private:
  Key key_of(const ports::StoredUsage& row) const;

  Asked asked_;
  std::function<bool(uid_t)> hides_;
  std::map<Key, Sum> sums_;
};

}  // namespace gpurota::daemon
