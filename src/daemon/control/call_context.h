// The parts of the daemon that the calls of the control protocol use; each group of calls
// (*_methods.h) takes those that it needs. State thread only.
#pragma once

#include "daemon/control/control_server.h"
#include "daemon/control/shared_answers.h"
#include "daemon/control/views.h"
#include "daemon/gpus/driver_state.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/lease_update.h"
#include "daemon/leases/queue.h"
#include "proto/methods.h"

#include <functional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Bookings;
class CdiSpecs;
class DriverLimits;
class Notifier;
class ParkKeeper;
class Fillers;
class Jobs;
class SeriesKeeper;
class TurnKeeper;
class WebSessions;

// Questions that only the daemon as a whole can answer.
class DaemonSelf {
 public:
  virtual ~DaemonSelf() = default;
  // Each piece of the answer examines one GPU, or the machine.
  virtual std::shared_ptr<LongAnswer> doctor(uid_t viewer) = 0;
  virtual proto::Health::Reply health() const = 0;
};

// Reads the configuration again, and shows it.
class Reloading {
 public:
  virtual ~Reloading() = default;
  // kInvalid has all mistakes, a line each.
  virtual Result<proto::Reload::Reply> reload() = 0;
  // Without `everything`, settings that name users other than `viewer` are left out, and counted.
  virtual proto::ShowConfig::Reply show_config(bool everything, const std::string& viewer) = 0;
};

// Everything here must outlive the objects that refer to it.
struct CallContext {
  const LeaseTables& tables;
  LeaseManager& leases;
  Queue& queue;
  const Availability& availability;
  GpuTable& gpus;
  const Views& views;
  std::string tenant_socket;
  std::string preload;  // libgpurota.so; empty: not installed
  std::string config_file{};
  const DriverState& driver;
  DaemonSelf& self;
  Reloading& reloading;
  Samples& samples;  // asked for new samples when a request gets no GPU at once
  Recorder& recorder;
  GpuStates& states;
  const GpuRooms& rooms;
  const Allowances& allowances;
  const LeaseUpdates& updates;
  Users& users;
  const lease::GrantBook& grants;
  std::function<WallTime()> wall_clock;
  Jobs& jobs;
  ports::Processes& processes;
  Fillers& fillers;
  SharedAnswers& answers;
  TurnKeeper& turns;
  const config::Config& config;
  Bookings& bookings;
  const CdiSpecs& cdi;
  Notifier& notifier;
  const SeriesKeeper& series;
  std::function<void()> wake_streams;  // call when a stream has an answer
  WebSessions& sessions;
  DriverLimits& driver_limits;
  ParkKeeper& parker;
};

}  // namespace gpurota::daemon
