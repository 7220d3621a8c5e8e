// The methods about jobs; see methods.h, which has their place among the others.
#pragma once

#include "proto/types.h"

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
  std::optional<WallTime> since;
  std::optional<LeaseId> lease_id;
  int failures = 0;
  std::vector<JobRun> runs;
  bool operator==(const Job&) const = default;
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

struct ReadJobLog {
  static constexpr std::string_view kMethod = "dev.gpurota.ReadJobLog";
  struct Reply {
    std::string text;
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::optional<std::string> user;
  std::optional<int> bytes;
  bool operator==(const ReadJobLog&) const = default;
};

}  // namespace gpurota::proto
