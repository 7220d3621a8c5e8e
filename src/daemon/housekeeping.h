// The work of every second: asks again for a driver that was missing, retries the store, follows
// descendants where there is no cgroup, and discards data about ended processes. State thread only.
#pragma once

#include "daemon/control/shared_answers.h"
#include "daemon/gpus/gpu_finder.h"
#include "daemon/health.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/attribution.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/supervised/fillers.h"
#include "daemon/supervised/jobs.h"
#include "daemon/users/user_log.h"
#include "daemon/watch/library_reader.h"

namespace gpurota::daemon {

class Housekeeping {
 public:
  // All must outlive the Housekeeping.
  struct Parts {
    ports::EventLoop& loop;
    UserLog& log;
    const GpuTable& gpus;
    GpuFinder& finder;
    const LeaseTables& tables;
    LeaseManager& leases;
    Attribution& attribution;
    LibraryReader& libraries;
    Recorder& recorder;
    Jobs& jobs;
    Fillers& fillers;
    SharedAnswers& answers;
    Health& health;
  };

  explicit Housekeeping(Parts parts) : parts_(std::move(parts)) {}

  // Does the work now, and then every second.
  void run();

 private:
  void store_again();

  Parts parts_;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
