// The rings beside a simple model that keeps every sample: random loads, gaps, restarts, and clocks
// that are set.
#include "series/rings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace gpurota::series {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const GpuUuid kGpu{"GPU-1"};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::int64_t chance = pick(1000);
      if (chance < 3) time_ += pick(4000);  // off, or suspended
      if (chance == 3) set_back(pick(kPatience.count()));
      if (chance == 4) set_back(kPatience.count() + 1 + pick(2000));
      if (chance == 5) restart();
      sample();
      ++time_;
    }
  }

  // Each closed step equals the merge of its samples, while these are still in the finer ring.
  // Nothing is in the future.
  void check() const {
    const std::int64_t end = last_ / 10;
    for (std::int64_t number = end - 80; number < end; ++number) {
      if (cut_.contains(number)) continue;
      std::uint64_t count = 0, sum = 0, most = 0;
      for (std::int64_t second = number * 10; second < number * 10 + 10; ++second) {
        const auto at = samples_.find(second);
        if (at == samples_.end()) continue;
        ++count;
        sum += at->second.load;
        most = std::max(most, at->second.most);
      }
      const std::string* const row = rings_.find(1, number);
      ASSERT_EQ(row != nullptr, count > 0) << number;
      if (!row) continue;
      const Entry entry = decode(*row).at(0);
      EXPECT_EQ(entry.seconds, count);
      EXPECT_EQ(entry.values[kMaxLoad], most);
      EXPECT_LE(std::abs(static_cast<double>(entry.values[kLoad]) -
                         static_cast<double>(sum) / static_cast<double>(count)),
                0.5);
    }
    for (std::int64_t second = last_ + 1; second < last_ + 5000; ++second) {
      ASSERT_EQ(rings_.find(0, second), nullptr);
      ASSERT_EQ(rings_.find(1, last_ / 10 + 1 + second - last_), nullptr);
    }
    EXPECT_LE(rings_.bytes(), most_bytes_of_rows(1));
  }

  // Checks that stored rows, read again, equal the rows in memory.
  void check_stored() {
    store();
    Rings again;
    again.restore(stored(), WallTime(seconds(last_)));
    for (std::int64_t second = last_ - 899; second <= last_; ++second) {
      const std::string* const ours = rings_.find(0, second);
      const std::string* const theirs = again.find(0, second);
      ASSERT_EQ(ours != nullptr, theirs != nullptr) << second;
      if (ours) {
        EXPECT_EQ(*ours, *theirs);
      }
    }
  }

 private:
  struct Sample {
    std::uint64_t load = 0, most = 0;
  };
  std::int64_t pick(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
  }
  void set_back(std::int64_t by) { time_ -= by; }

  void sample() {
    const auto load = static_cast<std::uint64_t>(pick(1001));
    Entry entry;
    entry.subject = subject_of(kGpu);
    entry.values[kLoad] = entry.values[kMaxLoad] = load;
    rings_.add(WallTime(seconds(time_)), {entry});
    if (time_ < last_ && last_ - time_ <= kPatience.count()) return;
    if (time_ == last_) {  // the clock was set back to the same second: both count
      Sample& both = samples_[time_];
      both.most = std::max(both.most, load);
      both.load = (both.load + load + 1) / 2;
    } else {
      // The finer steps of the step into which the clock was set back are already gone.
      if (last_ - time_ > 880) cut_.insert(time_ / 10);
      samples_.erase(samples_.lower_bound(time_), samples_.end());
      samples_[time_] = {load, load};
    }
    last_ = time_;
    if (pick(10) == 0) store();
  }

  void store() {
    for (SeriesRow& row : rings_.take_changed()) {
      const std::pair key(row.ring, row.place);
      disk_[key] = std::move(row);
    }
  }
  std::vector<SeriesRow> stored() const {
    std::vector<SeriesRow> rows;
    for (const auto& [key, row] : disk_) {
      if (!row.data.empty()) rows.push_back(row);
    }
    return rows;
  }
  void restart() {
    store();
    rings_ = Rings();
    rings_.restore(stored(), WallTime(seconds(std::max(time_, last_))));
    time_ = std::max(time_, last_ + 1);
  }

  std::mt19937_64 random_;
  Rings rings_;
  std::map<std::pair<int, std::int64_t>, SeriesRow> disk_;
  std::map<std::int64_t, Sample> samples_;
  std::set<std::int64_t> cut_;
  std::int64_t time_ = 1'800'000'000;
  std::int64_t last_ = 0;
};

class RingsProperty : public ::testing::TestWithParam<unsigned> {};

TEST_P(RingsProperty, StepsEqualTheSumOfTheirSamples) {
  World world(GetParam());
  for (int i = 0; i < 40; ++i) {
    world.run(250);
    world.check();
    if (HasFatalFailure()) FAIL() << "after " << i;
  }
  world.check_stored();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RingsProperty, ::testing::Range(1U, 21U));

}  // namespace
}  // namespace gpurota::series
