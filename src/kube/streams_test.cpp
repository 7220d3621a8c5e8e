#include "kube/streams.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace gpurota::kube {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Stands for gRPC's context.
struct Context {
  std::atomic<bool> cancelled = false;
  bool IsCancelled() const { return cancelled; }
};
class Writer {
 public:
  bool Write(int value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(value);
    came_.notify_all();
    return value >= 0;
  }
  void wait_for_count(std::size_t count) {
    wait([&] { return values_.size() >= count; });
  }
  void wait_for_value(int value) {
    wait([&] { return !values_.empty() && values_.back() == value; });
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  template <class Holds>
  void wait(Holds holds) {
    std::unique_lock lock(mutex_);
    came_.wait(lock, holds);
  }
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<int> values_;  // guarded by mutex_
};
int plain(int value, Clock::time_point) { return value; }

TEST(AStream, SendsTheNewestValueToEveryStream) {
  Published<int> published;
  Streams streams;
  Context context;
  Writer first, second;
  std::thread one([&] { EXPECT_TRUE(streams.tell(published, context, first, plain)); });
  std::thread two([&] { EXPECT_TRUE(streams.tell(published, context, second, plain)); });
  for (const int value : {1, 2, 2, 3}) published.publish(value);
  first.wait_for_value(3);
  second.wait_for_value(3);
  EXPECT_EQ(streams.open(), 2);
  streams.end();
  one.join();
  two.join();
  EXPECT_EQ(streams.open(), 0);
}

TEST(AStream, ResendsOnlyCurrentMessages) {
  Published<int> published;
  Streams streams;
  Context context;
  Writer writer;
  std::thread stream([&] { streams.tell(published, context, writer, plain, milliseconds(1)); });
  published.publish(7);
  writer.wait_for_count(1);
  std::this_thread::sleep_for(milliseconds(1200));  // two checks
  EXPECT_EQ(writer.count(), 1u);
  published.publish(7);
  writer.wait_for_count(2);
  context.cancelled = true;
  stream.join();
}

TEST(AStream, EndsWhenAWriteFails) {
  Published<int> published;
  Streams streams;
  Context context;
  Writer writer;
  published.publish(-1);
  EXPECT_TRUE(streams.tell(published, context, writer, plain));
}

TEST(AStream, NumberOfStreamsIsLimited) {
  Published<int> published;
  Streams streams;
  Context context;
  Writer writer;
  std::vector<std::thread> threads;
  published.publish(1);
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(streams.tell(published, context, writer, plain)); });
  }
  writer.wait_for_count(16);
  EXPECT_FALSE(streams.tell(published, context, writer, plain));
  streams.end();
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace gpurota::kube
