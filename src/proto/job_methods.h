// The methods about jobs; see methods.h, which has their place among the others.
#pragma once

#include "proto/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::proto {

struct JobRun {
  std::optional<WallTime> started;
  WallTime ended;
  std::string reason;
  int code = 0;
  std::optional<std::string> detail;
  bool operator==(const JobRun&) const = default;
};

struct Job {
  std::string name;
  uid_t uid = 0;
  std::string user;
  std::string state;
  std::optional<std::string> detail;
  std::vector<std::string> command;
  std::vector<std::string> options;
  std::string workdir;
  std::vector<std::string> variables;
  std::string restart;
  std::vector<std::string> after;
  std::optional<std::string> output;
  std::optional<WallTime> since;
  std::optional<LeaseId> lease_id;
  std::optional<RequestId> request_id;
  std::optional<int> position;
  int failures = 0;
  std::vector<JobRun> runs;
  bool operator==(const Job&) const = default;
};

// As it is written to a file and read from one.
struct JobDefinition {
  std::string name;
  std::vector<std::string> command;
  std::vector<std::string> options;
  std::string workdir;
  std::vector<Variable> environment;
  std::vector<std::string> variables;
  std::string restart;
  std::vector<std::string> after;
  std::optional<std::string> output;
  bool start = true;
  bool operator==(const JobDefinition&) const = default;
};

struct JobChange {
  std::string name;
  std::string change;
  bool operator==(const JobChange&) const = default;
};

struct AddJob {
  static constexpr std::string_view kMethod = "dev.gpurota.AddJob";
  struct Reply {
    Job job;
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::vector<std::string> command;
  std::vector<std::string> options;
  std::optional<std::string> workdir;
  std::vector<Variable> environment;
  std::optional<std::string> restart;
  std::optional<std::vector<std::string>> after;
  std::optional<std::string> output;
  bool operator==(const AddJob&) const = default;
};

struct ListJobs {
  static constexpr std::string_view kMethod = "dev.gpurota.ListJobs";
  struct Reply {
    std::vector<Job> jobs;
    bool operator==(const Reply&) const = default;
  };
  std::optional<std::string> name;
  std::optional<std::string> user;
  bool operator==(const ListJobs&) const = default;
};

struct ControlJob {
  static constexpr std::string_view kMethod = "dev.gpurota.ControlJob";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::optional<std::string> user;
  std::string action;
  std::optional<bool> force;
  bool operator==(const ControlJob&) const = default;
};

struct UpdateJob {
  static constexpr std::string_view kMethod = "dev.gpurota.UpdateJob";
  struct Reply {
    Job job;
    bool live = false;
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::optional<std::string> user;
  std::optional<std::vector<std::string>> command;
  std::optional<std::vector<std::string>> options;
  std::optional<std::string> workdir;
  std::optional<std::vector<Variable>> environment;
  std::optional<std::string> restart;
  std::optional<std::vector<std::string>> after;
  std::optional<std::string> output;
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
  std::optional<std::int64_t> seconds;
  std::optional<int> priority{};
  std::optional<std::string> quantum{};
  bool operator==(const UpdateJob&) const = default;
};

struct ExportJobs {
  static constexpr std::string_view kMethod = "dev.gpurota.ExportJobs";
  struct Reply {
    std::vector<JobDefinition> jobs;
    bool operator==(const Reply&) const = default;
  };
  std::optional<std::string> name;
  std::optional<std::string> user;
  std::optional<bool> secrets;
  bool operator==(const ExportJobs&) const = default;
};

struct ApplyJobs {
  static constexpr std::string_view kMethod = "dev.gpurota.ApplyJobs";
  struct Reply {
    std::vector<JobChange> changes;
    bool operator==(const Reply&) const = default;
  };
  std::vector<JobDefinition> jobs;
  bool operator==(const ApplyJobs&) const = default;
};

struct ReadJobLog {
  static constexpr std::string_view kMethod = "dev.gpurota.ReadJobLog";
  struct Reply {
    std::string text;
    std::string cursor;
    bool missed = false;
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::optional<std::string> user;
  std::optional<int> bytes;
  std::optional<std::string> cursor;
  bool operator==(const ReadJobLog&) const = default;
};

}  // namespace gpurota::proto
