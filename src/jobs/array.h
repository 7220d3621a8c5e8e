// Arrays: a job of many items, each with an index, of which some run at the same time. These
// classes say which items there are, how far each is, and which one starts next. Pure.
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

// The bounds of one array.
inline constexpr std::size_t kMostItems = 10'000;
inline constexpr std::int64_t kMostIndex = 9'999'999;
inline constexpr int kMostAtOnce = 256;
inline constexpr int kUsualAtOnce = 64;  // unless the owner says how many

// The indices of an array: ranges in rising order, with gaps between them.
class Indices {
 public:
  struct Range {
    std::int64_t first = 0, last = 0;
    bool operator==(const Range&) const = default;
  };

  // No indices.
  Indices() = default;
  // The indices from 1 to `count`.
  static Indices up_to(std::size_t count);
  // "1-50", "1,4,7-9". kInvalid, with what to write instead.
  static Result<Indices> parse(std::string_view text);

  bool empty() const { return ranges_.empty(); }
  std::size_t count() const;
  bool has(std::int64_t index) const;
  // The first index that is not below this one.
  std::optional<std::int64_t> from(std::int64_t index) const;
  bool operator==(const Indices&) const = default;

 private:
  friend std::string to_string(const Indices& indices);  // in the form that parse() reads
  std::vector<Range> ranges_;
};

// An array as people write it: "1-50%4".
struct ArrayText {
  Indices indices;
  std::optional<int> at_once;
};
Result<ArrayText> parse_array(std::string_view text);
Result<void> check_at_once(std::int64_t at_once);

// How far an item is. kCancelled: a person stopped the item, before its end or before its start.
enum class ItemKind { kWaiting, kRunning, kDone, kFailed, kUnknown, kCancelled };
const char* to_string(ItemKind kind);  // "waiting", "running", "done", …: stable
// The kind of an item that is not running.
ItemKind kind_of(const JobState& state);
// The exit status of an item that is not running, as a shell has it: the exit code of the last run,
// or 128 and the signal that killed it. 0 for kDone alone, and 1 where there is no other code.
int exit_status_of(const JobState& state);

struct ItemCounts {
  std::size_t running = 0, done = 0, failed = 0, unknown = 0, cancelled = 0, waiting = 0;
  bool operator==(const ItemCounts&) const = default;
};
// "3 running, 12 done, 1 failed, 34 wait".
std::string items_text(const ItemCounts& counts);

// The state of an item that did not end well and is to start again.
JobState to_retry(JobState state);

// The items of one array. An item that has never begun takes no memory.
class Items {
 public:
  explicit Items(Indices indices = {}) : indices_(std::move(indices)) {}

  const Indices& indices() const { return indices_; }
  ItemCounts counts() const;
  // The item that starts next. Items that are to start again come first.
  std::optional<std::int64_t> next() const;
  bool is_over() const { return on_.empty() && !next(); }
  const std::set<std::int64_t>& on() const { return on_; }
  // The state of an item that has begun or is cancelled, and is not running; nullptr for any other
  // item.
  const JobState* state_of(std::int64_t index) const;
  // The items that have begun or are cancelled, and are not running.
  std::vector<std::int64_t> known() const;
  ItemKind kind(std::int64_t index) const;
  // The highest exit status of the items that have ended. Takes time in proportion to their number.
  int worst_exit_status() const;

  // The item runs from now on. Returns the state that it had.
  JobState begin(std::int64_t index);
  // The item is no longer running: it has ended, waits to be started again (kWaiting), or is not to
  // begin (kCancelled).
  void rest(std::int64_t index, JobState state);
  bool has_failed() const { return ended_.failed + ended_.unknown + ended_.cancelled > 0; }
  // The first items that did not end well, beginning at this index: at most `most`.
  std::vector<std::int64_t> failed_from(std::int64_t index, std::size_t most) const;
  // Makes all items wait, as if none had begun. Do not call while one runs.
  void reset();

 private:
  std::size_t& count_of(ItemKind kind);
  void pass_begun();

  Indices indices_;
  std::map<std::int64_t, JobState> resting_;
  std::set<std::int64_t> on_, again_;
  std::int64_t fresh_from_ = 0;  // every item below it has begun, or is cancelled
  ItemCounts ended_;             // of the items in resting_, except for those that wait
};

}  // namespace gpurota::jobs
