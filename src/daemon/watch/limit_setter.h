// Sets and removes the driver's own memory limits of control groups (docs/design/driver-limits.md).
//
// Never changes a limit that neither this daemon nor an earlier one has set. A file lists the
// limits that were set. Each limit is in the file before the driver is asked, so the next daemon
// knows all limits even if this one is killed. Used by one job of a worker at a time; blocks as
// long as the driver does.
#pragma once

#include "core/gpu.h"
#include "ports/gpu_probe.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

// A control group, by its directory, on one GPU.
struct LimitPlace {
  std::string group;
  GpuUuid gpu;
  auto operator<=>(const LimitPlace&) const = default;
};

// The driver's hard limit for a lease with this limit on a GPU of this size: higher by a sixteenth
// of the limit and at least 512 MiB. The driver also counts memory that it allocates only when it
// is needed (code, stacks), and that libgpurota therefore cannot refuse. A program that fits
// without the driver's limit must not fail because of it.
Bytes driver_limit(Bytes limit, Bytes memory);

// A limit that somebody else has set.
struct OthersLimit {
  std::string group;
  Bytes hard;
};

// The limit that the driver enforces at one place.
struct LimitFound {
  std::optional<Bytes> hard;         // empty: nothing
  std::string others_group{};        // somebody else set it, for this group; empty: it is gpurota's
  std::optional<Error> error{};      // why gpurota's limit is not set
  std::vector<OthersLimit> below{};  // of groups below the place: apply to a part of its programs
};

struct LimitRound {
  std::map<LimitPlace, LimitFound> found;      // at each place that was asked for
  std::map<GpuUuid, std::string> unsupported;  // why the driver has no limits there
  std::vector<std::string> problems;           // limits that could not be removed; file errors
  std::optional<LimitPlace> daemon_in;         // the daemon itself is in this limited group
};

class LimitSetter {
 public:
  // `file`: empty: what was set is lost with the daemon.
  LimitSetter(std::shared_ptr<ports::GpuProbe> probe, std::string file)
      : probe_(std::move(probe)), file_(std::move(file)) {}

  // The most groups below a place that are looked at.
  static constexpr std::size_t kMostBelow = 64;

  using Wanted = std::map<LimitPlace, Bytes>;
  struct Machine {
    std::vector<GpuInfo> gpus;
    std::string own_group;  // the daemon's; empty: none
    std::string driver;     // its version
  };
  // Sets the wanted limits, and removes all other limits that gpurota has set. A GPU whose driver
  // has no limits is asked again only under another version of the driver.
  LimitRound carry_out(const Wanted& wanted, const Machine& machine);

 private:
  using Values = std::set<Bytes>;
  void load(LimitRound& round);
  void save(LimitRound& round);
  void remove(const LimitPlace& place, const GpuInfo& gpu, LimitRound& round);
  LimitFound settle(const LimitPlace& place, Bytes hard, const GpuInfo& gpu, LimitRound& round);
  Result<void> set(const LimitPlace& place, Bytes hard, const GpuInfo& gpu, LimitRound& round);
  void examine(const GpuInfo& gpu, const std::string& own_group, LimitRound& round);
  void skip(const GpuInfo& gpu, const Wanted& wanted, LimitRound& round);
  // The group's hard limit if somebody else has set it; empty: no such limit was found.
  std::optional<Bytes> others_limit(const GpuInfo& gpu, const std::string& group) const;
  // The smallest limit that somebody else has set for a group above `group`.
  std::optional<OthersLimit> above(const GpuInfo& gpu, std::string group) const;
  std::vector<OthersLimit> below(const GpuInfo& gpu, const std::string& group) const;

  std::shared_ptr<ports::GpuProbe> probe_;
  std::string file_;
  bool loaded_ = false;
  std::string driver_;                          // the version that unsupported_ is of
  std::map<GpuUuid, std::string> unsupported_;  // why the driver has no limits there
  // The limits that gpurota has set, or was about to set when it was killed.
  std::map<LimitPlace, Values> own_;
};

}  // namespace gpurota::daemon
