// The calls about jobs. Users see and change their own jobs. Administrators see those of all users,
// and name the user whose jobs they mean. State thread only.
#pragma once

#include "daemon/control/call_context.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct JobEntry;
struct QueueEntry;

class JobMethods {
 public:
  explicit JobMethods(const CallContext& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::AddJob&);
  Outcome on(const Caller& caller, const proto::ListJobs&);
  Outcome on(const Caller& caller, const proto::ListJobItems&);
  Outcome on(const Caller& caller, const proto::ControlJob&);
  Outcome on(const Caller& caller, const proto::ReadJobLog&);

  proto::Job describe_job(const JobEntry& job) const;
  // kNotFound, even for a job of somebody else that the caller may not see.
  Result<const JobEntry*> own_job(const Caller& caller, const std::string& name,
                                  const std::optional<std::string>& user) const;

 private:
  // The job's request in the queue; nullptr: none.
  const QueueEntry* request_of(const JobEntry& job) const;
  void describe_array(const JobEntry& job, proto::Job& shown) const;
  proto::JobItem describe_item(const JobEntry& array, std::int64_t index) const;
  // Carries out ControlJob for a part of an array.
  Outcome control_array(const Caller& caller, const proto::ControlJob& call);
  struct Wanted;  // what is to be done with a job, and the word for it
  static Result<Wanted> wanted_of(const std::string& action);
  // The ids of all jobs that the call names, each once.
  Result<std::vector<std::uint64_t>> jobs_in(const Caller& caller,
                                             const proto::ControlJob& call) const;
  Result<void> control(const Caller& caller, std::uint64_t id, const Wanted& wanted,
                       const std::optional<std::string>& reason);

  const CallContext& parts_;
};

}  // namespace gpurota::daemon
