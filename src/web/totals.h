// The sums of a machine for the gpurota-web of another one, as one JSON object. Pure. Another
// machine's answer is not trusted: its length is limited, its figures must be consistent, and its
// text is shown as text.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "web/json.h"
#include "web/metrics.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::web {

struct Totals {
  // A longer text is not an answer of gpurota-web.
  static constexpr std::size_t kMostBytes = 64u << 10;
  static constexpr std::size_t kMostUsers = 64;
  static constexpr std::size_t kMostModels = 8;

  struct Model {
    std::string name;
    std::int64_t gpus = 0, free = 0;
  };

  std::string version{};
  bool daemon_up = false;  // false: all members below are empty
  // GPUs that can be leased; a split GPU counts as its instances. Each is one of the four kinds
  // below.
  std::int64_t gpus = 0;
  std::int64_t free = 0;         // wholly free
  std::int64_t shared = 0;       // in use, with room for another lease
  std::int64_t full = 0;         // no room, or kept for a booking
  std::int64_t unavailable = 0;  // out of service, or in error
  Bytes memory{}, used{}, available{};
  std::optional<std::int64_t> utilisation_percent{};  // average
  std::int64_t leases = 0, waiting = 0;
  std::vector<Model> models{};
  std::optional<std::vector<std::string>> users{};  // with leases or requests; empty: not reported
};

// `names`: includes the users.
Totals totals_of(const std::optional<Snapshot>& snapshot, bool names);

// Adds the fields of `totals`, as docs/operate/web-page.md lists them.
void add_totals(JsonObject& to, const Totals& totals);
std::string totals_json(const Totals& totals);

// Parses text that anybody may have written. kInvalid: what is wrong with it.
Result<Totals> parse_totals(std::string_view text);

}  // namespace gpurota::web
