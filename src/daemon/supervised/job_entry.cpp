#include "daemon/supervised/job_entry.h"

namespace gpurota::daemon {

ports::StoredJob row_of(const JobEntry& job, const std::string& boot_id) {
  return {{job.id, job.uid, job.user, encode(job.spec)}, encode(job.life.state()), boot_id};
}

}  // namespace gpurota::daemon
