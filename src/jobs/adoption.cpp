#include "jobs/adoption.h"

namespace gpurota::jobs {
namespace {

bool is_same_process(const RecordedRun& recorded, const ObservedRun& observed) {
  if (!observed.start_ticks || *observed.start_ticks != recorded.start_ticks) return false;
  // One that has left the job's cgroup is no more under it. `cgroup` may be a path below it.
  return recorded.cgroup.empty() || observed.cgroup == recorded.cgroup ||
         observed.cgroup.rfind(recorded.cgroup + "/", 0) == 0;
}

}  // namespace

Adoption judge(const RecordedRun& recorded, const ObservedRun& observed) {
  // Pids, ticks and cgroups mean nothing in another boot; nor does a record without a boot.
  if (recorded.boot_id.empty() || recorded.boot_id != observed.boot_id) return Adoption::kRebooted;
  if (is_same_process(recorded, observed) && !observed.is_zombie) return Adoption::kRunning;
  const bool has_cgroup = !recorded.cgroup.empty();
  return has_cgroup && observed.cgroup_populated ? Adoption::kRemnants : Adoption::kEnded;
}

}  // namespace gpurota::jobs
