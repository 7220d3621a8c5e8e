// The methods about fillers; see methods.h, which has their place among the others.
#pragma once

#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::proto {

struct FillerPlace {
  int gpu = 0;
  GpuUuid gpu_uuid;
  std::string state;
  std::string why;
  std::optional<WallTime> since;
  std::optional<LeaseId> lease_id;
  std::optional<WallTime> start_at;
  bool operator==(const FillerPlace&) const = default;
};

struct Filler {
  std::string name;
  uid_t uid = 0;
  std::string user;
  std::string state;
  std::optional<std::string> detail;
  std::vector<std::string> command;
  std::string workdir;
  std::vector<std::string> variables;
  std::optional<std::vector<GpuUuid>> gpu_ids;
  std::optional<int> instances;
  std::optional<SizeSpec> memory;
  std::int64_t idle_seconds = 0;
  std::int64_t grace_seconds = 0;
  std::optional<std::string> on_yield;
  std::vector<FillerPlace> places;
  bool operator==(const Filler&) const = default;
};

struct AddFiller {
  static constexpr std::string_view kMethod = "dev.gpurota.AddFiller";
  struct Reply {
    Filler filler;
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::vector<std::string> command;
  std::optional<std::string> workdir;
  std::vector<Variable> environment;
  std::optional<std::vector<std::string>> gpu_ids;
  std::optional<int> instances;
  std::optional<SizeSpec> memory;
  std::optional<std::int64_t> idle_seconds;
  std::optional<std::int64_t> grace_seconds;
  std::optional<std::string> on_yield;
  bool operator==(const AddFiller&) const = default;
};

struct ListFillers {
  static constexpr std::string_view kMethod = "dev.gpurota.ListFillers";
  struct Reply {
    std::vector<Filler> fillers;
    bool operator==(const Reply&) const = default;
  };
  std::optional<std::string> name;
  std::optional<std::string> user;
  bool operator==(const ListFillers&) const = default;
};

struct ControlFiller {
  static constexpr std::string_view kMethod = "dev.gpurota.ControlFiller";
  struct Reply {
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::optional<std::string> user;
  std::string action;
  bool operator==(const ControlFiller&) const = default;
};

struct ReadFillerLog {
  static constexpr std::string_view kMethod = "dev.gpurota.ReadFillerLog";
  struct Reply {
    std::string text;
    bool operator==(const Reply&) const = default;
  };
  std::string name;
  std::optional<std::string> user;
  std::optional<int> bytes;
  bool operator==(const ReadFillerLog&) const = default;
};

}  // namespace gpurota::proto
