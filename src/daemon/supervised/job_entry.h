// A job in the memory of the daemon.
#pragma once

#include "daemon/supervised/supervisor.h"
#include "jobs/array.h"
#include "jobs/supervision.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gpurota::daemon {

// Why an array starts no items for a while: an item was refused something that it may get later.
struct PutOff {
  std::string why;  // the refusal
  ports::EventLoop::SourcePtr timer{};
};

// A job, or an item of an array while it runs. `id` is the number of the run.
struct JobEntry : Supervised {
  jobs::Supervision life;
  std::optional<ports::ProcessId>
      runner{};                    // the `gpurota run` of the run; set once the run has its lease
  bool adopted = false;            // an earlier daemon started the run
  std::optional<LeaseId> lease{};  // of the run
  std::string refusal{};           // why the run got no lease
  bool refusal_may_pass = false;   // the same job may be able to start later
  ports::EventLoop::SourcePtr timer{};
  WallTime next_time{};               // of the timer
  std::optional<jobs::Phase> told{};  // the end that the owner was notified of
  std::map<GpuUuid, Bytes> used{};    // memory that the lease used, by the last sample of each GPU

  jobs::Items items{};                      // of an array
  ports::EventLoop::SourcePtr next_step{};  // of an array: the timer of its next step
  std::int64_t retry_from = 0;              // of an array that retries items: the next item
  std::optional<PutOff> put_off{};          // of an array
  std::uint64_t array = 0;                  // of an item: the number of its array; 0: no item
  std::int64_t index = 0;                   // of an item

  bool is_removed() const { return life.state().removed; }
};

// The row of the job in the store.
ports::StoredJob row_of(const JobEntry& job, const std::string& boot_id);

// The numbers of the runs of items. The numbers of jobs are smaller.
inline constexpr int kItemBits = 24;
constexpr std::uint64_t run_of(std::uint64_t array, std::int64_t index) {
  return array << kItemBits | static_cast<std::uint64_t>(index + 1);
}
// The array of a run; 0: the run is not that of an item.
constexpr std::uint64_t array_of(std::uint64_t run) { return run >> kItemBits; }
constexpr std::int64_t index_of(std::uint64_t run) {
  return static_cast<std::int64_t>(run & ((std::uint64_t{1} << kItemBits) - 1)) - 1;
}

// "exit status 3", "over-limit: it holds …": why the last run of the job ended, for its owner.
std::string run_end_text(const jobs::JobState& state);

// Why a run is being ended after its job was stopped, restarted or removed: "its job was stopped by
// alice". All users can see this, so the job's name is left out.
std::string stopping_text(const JobEntry& job);

using JobEntries = std::map<std::uint64_t, JobEntry>;

}  // namespace gpurota::daemon
