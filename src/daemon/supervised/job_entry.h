// A job as the daemon has it.
#pragma once

#include "daemon/supervised/supervisor.h"
#include "jobs/array.h"
#include "jobs/supervision.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gpurota::daemon {

// A job, or an item of an array while it runs. Its id is the number of its run.
struct JobEntry : Supervised {
  jobs::Supervision life;
  std::optional<ports::ProcessId>
      runner{};                    // the `gpurota run` of the run, once it has come to its lease
  bool adopted = false;            // the run is one that an earlier daemon started
  std::optional<LeaseId> lease{};  // of the run
  std::string refusal{};           // why it got none
  ports::EventLoop::SourcePtr timer{};
  WallTime next_time{};               // of the timer
  std::optional<jobs::Phase> told{};  // its end, of which its owner has heard
  std::map<GpuUuid, Bytes> used{};    // by its lease, at the last look at each GPU

  jobs::Items items{};                      // of an array
  ports::EventLoop::SourcePtr next_step{};  // of an array: JobItems takes it soon
  std::int64_t retry_from = 0;              // of an array that retries items: the next one
  std::uint64_t array = 0;                  // of an item: the number of its array; 0: no item
  std::int64_t index = 0;                   // of an item

  bool is_removed() const { return life.state().removed; }
};

// Its row in the store.
ports::StoredJob row_of(const JobEntry& job, const std::string& boot_id);

// The numbers of the runs of items: those of jobs are smaller.
inline constexpr int kItemBits = 24;
constexpr std::uint64_t run_of(std::uint64_t array, std::int64_t index) {
  return array << kItemBits | static_cast<std::uint64_t>(index + 1);
}
// Of a run; 0: it is none of an item.
constexpr std::uint64_t array_of(std::uint64_t run) { return run >> kItemBits; }
constexpr std::int64_t index_of(std::uint64_t run) {
  return static_cast<std::int64_t>(run & ((std::uint64_t{1} << kItemBits) - 1)) - 1;
}

// "exit status 3", "over-limit: it holds …": why its last run ended, for its owner.
std::string run_end_text(const jobs::JobState& state);

// Why its run is being ended, for everybody (nothing of the job's name): "its job was stopped by
// alice". Of one that somebody stops, restarts or removes.
std::string stopping_text(const JobEntry& job);

using JobEntries = std::map<std::uint64_t, JobEntry>;

}  // namespace gpurota::daemon
