// The methods of the queue and of GPUs that are taken out of service; see methods.h, which has their
// place among the others.
#pragma once

#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::proto {

struct Request {
  RequestId request_id;
  int position = 0;
  LeaseKind kind = LeaseKind::kUnknown;
  uid_t uid = 0;
  std::string user;
  std::optional<std::string> as_name;
  WallTime since;
  int gpus = 0;
  std::optional<std::vector<GpuUuid>> gpu_ids;
  std::optional<SizeSpec> memory;
  std::optional<std::int64_t> seconds;
  int free = 0;
  std::vector<int> planned;
  std::optional<std::vector<std::string>> planned_labels;
  std::optional<WallTime> expected;
  std::string reason;
  std::optional<std::string> next;
  std::optional<WallTime> next_at;
  std::optional<pid_t> pid;
  std::optional<std::vector<std::string>> command;
  std::optional<std::string> note;
  std::optional<bool> swap{};
  std::optional<bool> oversize{};
  bool operator==(const Request&) const = default;
};

struct Enqueue {
  static constexpr std::string_view kMethod = "dev.gpurota.Enqueue";
  struct Reply {
    std::optional<Request> request;
    std::optional<Lease> lease;
    std::vector<Variable> environment;
    std::optional<std::string> preload;
    bool operator==(const Reply&) const = default;
  };
  std::string ticket;
  std::optional<std::string> kind;
  std::optional<int> gpus;
  std::optional<std::vector<std::string>> gpu_ids;
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::int64_t> seconds;
  std::optional<bool> take_over;
  std::optional<std::string> as_name;
  std::optional<std::string> note;
  std::optional<std::vector<std::string>> command;
  std::optional<Bytes> unreserved_threshold;
  std::optional<bool> swap{};
  std::optional<int> priority{};
  std::optional<std::string> quantum{};
  std::optional<bool> oversize{};
  bool operator==(const Enqueue&) const = default;
};

struct CheckRequest {
  static constexpr std::string_view kMethod = "dev.gpurota.CheckRequest";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  std::optional<uid_t> uid{};
  std::optional<int> gpus{};
  std::optional<std::vector<std::string>> gpu_ids{};
  std::optional<SizeSpec> memory{};
  std::optional<SizeSpec> soft_limit{};
  std::optional<std::int64_t> seconds{};
  std::optional<bool> swap{};
  std::optional<int> priority{};
  std::optional<std::string> quantum{};
  std::optional<bool> oversize{};
  bool operator==(const CheckRequest&) const = default;
};

struct GetEnvironment {
  static constexpr std::string_view kMethod = "dev.gpurota.GetEnvironment";
  struct Reply {
    Lease lease;
    std::vector<Variable> environment;
    std::optional<std::string> preload;
    bool operator==(const Reply&) const = default;
  };
  LeaseId lease_id;
  bool operator==(const GetEnvironment&) const = default;
};

struct ListRequests {
  static constexpr std::string_view kMethod = "dev.gpurota.ListRequests";
  struct Reply {
    std::vector<Request> requests;
    bool operator==(const Reply&) const = default;
  };
  bool operator==(const ListRequests&) const = default;
};

struct Cancel {
  static constexpr std::string_view kMethod = "dev.gpurota.Cancel";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  RequestId request_id;
  bool operator==(const Cancel&) const = default;
};

struct Drain {
  static constexpr std::string_view kMethod = "dev.gpurota.Drain";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  std::vector<std::string> gpu_ids;
  std::optional<std::string> reason;
  bool operator==(const Drain&) const = default;
};

struct Undrain {
  static constexpr std::string_view kMethod = "dev.gpurota.Undrain";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  std::vector<std::string> gpu_ids;
  bool operator==(const Undrain&) const = default;
};

}  // namespace gpurota::proto
