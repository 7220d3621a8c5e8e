// Shared by store_bench.cpp and writer_bench.cpp: a folder, times, and a typical lease.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "ports/store.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <stdlib.h>

namespace gpurota {

using Clock = std::chrono::steady_clock;

inline double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// An empty folder below $TMPDIR or /tmp: the file system that is measured.
class BenchFolder {
 public:
  BenchFolder() {
    path_ = (std::filesystem::temp_directory_path() / "gpurota-store-bench.XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~BenchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Keeps each single time, because a mean hides how long one client waits.
class Times {
 public:
  void add(Clock::duration time) { times_.push_back(microseconds(time)); }
  // Adds counters of microseconds: the median, the 99th percentile and the most.
  void report(benchmark::State& state, const std::string& name) {
    if (times_.empty()) return;
    std::sort(times_.begin(), times_.end());
    const auto at = [&](std::size_t percent) {
      return times_[(times_.size() - 1) * percent / 100];
    };
    state.counters[name + "p50"] = at(50);
    state.counters[name + "p99"] = at(99);
    state.counters[name + "most"] = times_.back();
  }

 private:
  std::vector<double> times_;
};

// Ends the program if something that is measured has failed.
template <class Value>
Value good(Result<Value> result) {
  if (!result) std::abort();
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

inline ports::StoredLease bench_lease(std::uint64_t id) {
  ports::StoredLease lease;
  lease.id.value = id;
  lease.uid = 1000;
  lease.kind = "run";
  lease.token = "0123456789abcdef0123456789abcdef";
  lease.since =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  lease.command = {"python", "train.py", "--epochs", "90"};
  lease.gpus = {{GpuUuid{"GPU-00000000-0000-0000-0000-000000000000"}, gib(8), std::nullopt}};
  lease.holder = ports::ProcessId{4711, 123456};
  lease.main = ports::ProcessId{4712, 123457};
  lease.cgroup = "/sys/fs/cgroup/gpurota.slice/lease-1";
  lease.boot_id = "00000000-0000-0000-0000-000000000000";
  return lease;
}

}  // namespace gpurota
