// The methods about turns, and what administrators set of a GPU; see methods.h, which has their place
// among the others.
#pragma once

#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::proto {

// A swap lease on one GPU.
struct TurnLease {
  LeaseId lease_id;
  uid_t uid = 0;
  std::string user;
  int priority = 0;
  std::string phase;
  std::string waits_for;
  std::optional<LeaseId> behind;
  std::optional<pid_t> pid;
  int position = 0;
  std::optional<WallTime> earliest;
  std::int64_t quantum_ms = 0;
  Bytes limit_bytes;
  Bytes resident_bytes;
  Bytes out_bytes;
  Bytes wired_bytes;
  std::optional<std::int64_t> own_quantum_ms{};
  std::optional<Bytes> soft_limit_bytes{};
  std::optional<bool> above_soft_limit{};
  std::optional<Bytes> oversize_bytes{};
  std::optional<Bytes> hosted_bytes{};
  bool operator==(const TurnLease&) const = default;
};

struct TurnSwitch {
  WallTime time;
  std::optional<LeaseId> from;
  LeaseId to;
  Bytes in_bytes;
  Bytes out_bytes;
  Bytes clean_bytes;
  std::int64_t microseconds = 0;
  bool operator==(const TurnSwitch&) const = default;
};

struct TurnGpu {
  int index = 0;
  GpuUuid uuid;
  std::string mode;
  bool takes_turns = false;
  Bytes capacity_bytes;
  Bytes used_bytes;
  Bytes deficit_bytes;
  std::optional<std::int64_t> quantum_ms;
  std::optional<LeaseId> holder;
  std::vector<LeaseId> waiting;
  std::vector<TurnLease> leases;
  std::vector<TurnSwitch> switches;
  std::optional<std::uint64_t> evictions{};
  std::optional<Bytes> evicted_bytes{};
  std::optional<Bytes> restored_bytes{};
  std::optional<std::uint64_t> handovers{};
  bool operator==(const TurnGpu&) const = default;
};

struct ListTurns {
  static constexpr std::string_view kMethod = "dev.gpurota.ListTurns";
  struct Reply {
    std::vector<TurnGpu> gpus;
    Bytes host_budget_bytes;
    Bytes host_out_bytes;
    bool operator==(const Reply&) const = default;
  };
  std::optional<std::vector<std::string>> gpu_ids;
  bool operator==(const ListTurns&) const = default;
};

struct SetGpus {
  static constexpr std::string_view kMethod = "dev.gpurota.SetGpus";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  std::vector<std::string> gpu_ids;
  std::optional<SizeSpec> capacity;
  std::optional<std::string> quantum;
  std::optional<std::string> turns;
  std::optional<bool> reset;
  bool operator==(const SetGpus&) const = default;
};

}  // namespace gpurota::proto
