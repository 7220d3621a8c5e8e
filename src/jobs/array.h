// Arrays: a job of many items, each with an index, of which some run at the same time. Which items
// there are, how far they are, and which one starts next. Pure.
#pragma once

#include "base/result.h"
#include "jobs/supervision.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::jobs {

// Of one array.
inline constexpr std::size_t kMostItems = 10'000;
inline constexpr std::int64_t kMostIndex = 9'999'999;
inline constexpr int kMostAtOnce = 256;
inline constexpr int kUsualAtOnce = 64;  // where nobody says how many

// The indices of an array: ranges in rising order, apart from each other.
class Indices {
 public:
  struct Range {
    std::int64_t first = 0, last = 0;
    bool operator==(const Range&) const = default;
  };

  // None.
  Indices() = default;
  // From 1 to this.
  static Indices up_to(std::size_t count);
  // "1-50", "1,4,7-9". kInvalid, with what to write instead.
  static Result<Indices> parse(std::string_view text);

  bool empty() const { return ranges_.empty(); }
  std::size_t count() const;
  bool has(std::int64_t index) const;
  // The first that is not below this.
  std::optional<std::int64_t> from(std::int64_t index) const;
  bool operator==(const Indices&) const = default;

 private:
  friend std::string to_string(const Indices& indices);  // as it is parsed
  std::vector<Range> ranges_;
};

// An array as people write it: "1-50%4".
struct ArrayText {
  Indices indices;
  std::optional<int> at_once;
};
Result<ArrayText> parse_array(std::string_view text);
Result<void> check_at_once(std::int64_t at_once);

// How far an item is. kCancelled: by a person, before its end or before its start.
enum class ItemKind { kWaiting, kRunning, kDone, kFailed, kUnknown, kCancelled };
const char* to_string(ItemKind kind);  // "waiting", "running", "done", …: stable
// Of one that does not run.
ItemKind kind_of(const JobState& state);
// Of one that does not run, as a shell has it: the exit code of the last run, 128 and the signal
// that killed it; 0 for kDone alone, and 1 where there is no other code.
int exit_status_of(const JobState& state);

struct ItemCounts {
  std::size_t running = 0, done = 0, failed = 0, unknown = 0, cancelled = 0, waiting = 0;
  bool operator==(const ItemCounts&) const = default;
};
// "3 running, 12 done, 1 failed, 34 wait".
std::string items_text(const ItemCounts& counts);

// The state of an item that did not end well, and is to start again.
JobState to_retry(JobState state);

// The items of one array. Those that have never begun take no memory.
class Items {
 public:
  explicit Items(Indices indices = {}) : indices_(std::move(indices)) {}

  const Indices& indices() const { return indices_; }
  ItemCounts counts() const;
  // Which starts next: first those that are to be started again.
  std::optional<std::int64_t> next() const;
  bool is_over() const { return on_.empty() && !next(); }
  const std::set<std::int64_t>& on() const { return on_; }
  // Of one that has begun or is cancelled, and does not run; nullptr: of another one.
  const JobState* state_of(std::int64_t index) const;
  // Those that have begun or are cancelled, and do not run.
  std::vector<std::int64_t> known() const;
  ItemKind kind(std::int64_t index) const;
  // The highest exit status of the items that have ended. Looks at each of them.
  int worst_exit_status() const;

  // The item runs from now on; returns what was known of it.
  JobState begin(std::int64_t index);
  // The item does not run: it has ended, or waits (kWaiting) to be started again, or is not to
  // begin (kCancelled).
  void rest(std::int64_t index, JobState state);
  bool has_failed() const { return ended_.failed + ended_.unknown + ended_.cancelled > 0; }
  // The first that did not end well, from this index on: at most so many.
  std::vector<std::int64_t> failed_from(std::int64_t index, std::size_t most) const;
  // All wait, as if none had begun. Not while one runs.
  void reset();

 private:
  std::size_t& count_of(ItemKind kind);
  void pass_begun();

  Indices indices_;
  std::map<std::int64_t, JobState> resting_;
  std::set<std::int64_t> on_, again_;
  std::int64_t fresh_from_ = 0;  // the first that has not begun is not below it
  ItemCounts ended_;             // of resting_, but for those that wait
};

}  // namespace gpurota::jobs
