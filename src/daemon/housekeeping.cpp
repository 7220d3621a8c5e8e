#include "daemon/housekeeping.h"

#include <chrono>
#include <set>

namespace gpurota::daemon {
namespace {

constexpr Duration kPeriod = std::chrono::seconds(1);
constexpr Duration kStorePeriod = std::chrono::seconds(60);

}  // namespace

void Housekeeping::store_again() {
  parts_.health.check_store(parts_.tables.store_error ? Duration(0) : kStorePeriod);
  if (parts_.tables.store_error) return;
  parts_.jobs.store_again();
  parts_.fillers.store_again();
  parts_.recorder.store_again();
}

void Housekeeping::run() {
  parts_.log.write_counts();
  parts_.answers.changed();
  parts_.finder.ask_again();
  store_again();
  parts_.leases.follow_processes();
  std::set<pid_t> listed;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    for (const GpuProcess& process : gpu.sample.processes) listed.insert(process.pid);
  }
  parts_.attribution.keep_only(listed);
  parts_.libraries.keep_only(listed);
  timer_ = parts_.loop.add_timer(parts_.loop.now() + kPeriod, ports::Urgency::kHousekeeping,
                                 [this] { run(); });
}

}  // namespace gpurota::daemon
