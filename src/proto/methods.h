// The methods of the control protocol: each struct is a method's parameters, its `Reply` the answer.
//
// A client fills the struct and sends call_json(); the daemon gets it from parse_call() as one
// alternative of `Params`, and answers with reply_json<Method>(). Plain data, any thread.
#pragma once

#include "proto/filler_methods.h"
#include "proto/health_methods.h"
#include "proto/job_methods.h"
#include "proto/queue_methods.h"
#include "proto/turns_methods.h"
#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace gpurota::proto {

inline constexpr std::string_view kInterface = "dev.gpurota";
inline constexpr std::string_view kServiceInterface = "org.varlink.service";

struct GetInfo {
  static constexpr std::string_view kMethod = "dev.gpurota.GetInfo";
  struct Reply {
    std::string version;
    pid_t pid = 0;
    uid_t uid = 0;
    std::string tenant_socket;
    std::optional<std::string> driver_version;
    int gpus = 0;
    bool operator==(const Reply&) const = default;
  };
  bool operator==(const GetInfo&) const = default;
};

struct Acquire {
  static constexpr std::string_view kMethod = "dev.gpurota.Acquire";
  struct Reply {
    Lease lease;
    std::vector<Variable> environment;
    std::optional<std::string> preload;
    bool operator==(const Reply&) const = default;
  };
  std::optional<int> gpus;
  std::optional<std::vector<std::string>> gpu_ids;
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
  std::optional<std::vector<std::string>> command;
  std::optional<std::string> kind;
  std::optional<std::int64_t> seconds;
  std::optional<bool> take_over;
  std::optional<std::string> as_name;
  std::optional<Bytes> unreserved_threshold;
  std::optional<bool> swap{};
  std::optional<int> priority{};
  std::optional<std::string> quantum{};
  std::optional<bool> oversize{};
  bool operator==(const Acquire&) const = default;
};

struct Start {
  static constexpr std::string_view kMethod = "dev.gpurota.Start";
  struct Reply {
    std::optional<std::string> cgroup;
    bool operator==(const Reply&) const = default;
  };
  LeaseId lease_id;
  pid_t pid = 0;
  std::optional<bool> subreaper;
  std::optional<std::int64_t> seconds;
  bool operator==(const Start&) const = default;
};

struct Hold {
  static constexpr std::string_view kMethod = "dev.gpurota.Hold";
  struct Reply {
    Lease lease;
    std::optional<Ended> ended;
    std::optional<std::string> reason;
    std::optional<std::string> notice;
    bool operator==(const Reply&) const = default;
  };
  LeaseId lease_id;
  bool operator==(const Hold&) const = default;
};

struct Release {
  static constexpr std::string_view kMethod = "dev.gpurota.Release";
  struct Reply {
    std::vector<LeaseId> lease_ids;
    bool operator==(const Reply&) const = default;
  };
  std::optional<LeaseId> lease_id;
  std::optional<std::vector<std::string>> gpu_ids;
  std::optional<bool> all;
  std::optional<bool> reservations;
  std::optional<bool> all_users;
  bool operator==(const Release&) const = default;
};

struct Update {
  static constexpr std::string_view kMethod = "dev.gpurota.Update";
  struct Reply {
    Lease lease;
    bool operator==(const Reply&) const = default;
  };
  LeaseId lease_id;
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
  std::optional<std::int64_t> seconds;
  std::optional<int> priority{};
  std::optional<std::string> quantum{};
  bool operator==(const Update&) const = default;
};

struct Status {
  static constexpr std::string_view kMethod = "dev.gpurota.Status";
  struct Reply {
    std::vector<Gpu> gpus;
    std::vector<Lease> leases;
    std::vector<Finding> findings;
    bool operator==(const Reply&) const = default;
  };
  bool operator==(const Status&) const = default;
};

struct ListProcesses {
  static constexpr std::string_view kMethod = "dev.gpurota.ListProcesses";
  struct Reply {
    std::vector<Process> processes;
    bool operator==(const Reply&) const = default;
  };
  std::optional<LeaseId> lease_id;
  bool operator==(const ListProcesses&) const = default;
};

struct Events {
  static constexpr std::string_view kMethod = "dev.gpurota.Events";
  struct Reply {
    std::vector<Event> events;
    std::uint64_t missed = 0;
    std::uint64_t left_out = 0;
    bool operator==(const Reply&) const = default;
  };
  std::optional<WallTime> since;
  std::optional<LeaseId> lease_id;
  std::optional<bool> follow;
  std::optional<std::uint64_t> after;
  bool operator==(const Events&) const = default;
};

struct Report {
  static constexpr std::string_view kMethod = "dev.gpurota.Report";
  struct Reply {
    WallTime since;
    WallTime until;
    std::string by;
    std::vector<ReportRow> rows;
    bool operator==(const Reply&) const = default;
  };
  std::optional<WallTime> since;
  std::optional<WallTime> until;
  std::optional<std::string> by;
  bool operator==(const Report&) const = default;
};

struct Doctor {
  static constexpr std::string_view kMethod = "dev.gpurota.Doctor";
  struct Reply {
    std::vector<Check> checks;
    bool operator==(const Reply&) const = default;
  };
  bool operator==(const Doctor&) const = default;
};

// Takes the configuration file as it is now. InvalidRequest says what is wrong with it.
struct Reload {
  static constexpr std::string_view kMethod = "dev.gpurota.Reload";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  bool operator==(const Reload&) const = default;
};

// org.varlink.service.GetInfo: answer it with service_info().
struct ServiceInfo {
  static constexpr std::string_view kMethod = "org.varlink.service.GetInfo";
  struct Reply {
    std::string vendor;
    std::string product;
    std::string version;
    std::string url;
    std::vector<std::string> interfaces;
    bool operator==(const Reply&) const = default;
  };
  bool operator==(const ServiceInfo&) const = default;
};

// org.varlink.service.GetInterfaceDescription: answer it with describe_interface().
struct InterfaceDescription {
  static constexpr std::string_view kMethod = "org.varlink.service.GetInterfaceDescription";
  struct Reply {
    std::string description;
    bool operator==(const Reply&) const = default;
  };
  std::string interface;
  bool operator==(const InterfaceDescription&) const = default;
};

using Params =
    std::variant<GetInfo, Acquire, Start, Hold, Release, Update, Status, ListProcesses, Events,
                 Report, Doctor, Health, Reload, Enqueue, CheckRequest, GetEnvironment,
                 ListRequests, Cancel, Drain, Undrain, AddFiller, ListFillers, ControlFiller,
                 ReadFillerLog, ListTurns, SetGpus, AddJob, ListJobs, ControlJob, UpdateJob,
                 ExportJobs, ApplyJobs, ReadJobLog, ServiceInfo, InterfaceDescription>;

}  // namespace gpurota::proto
