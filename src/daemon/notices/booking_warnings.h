// Before a booking begins: its owner, and the owners of open-ended leases that would have to leave
// for it, are told some times ahead (before_booking of [notify]). State thread only.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/bookings.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/owners.h"
#include "daemon/notices/notice.h"
#include "ports/event_loop.h"
#include "ports/processes.h"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace gpurota::daemon {

class BookingWarnings final {
 public:
  using InTheWay = std::function<std::vector<LeaseId>(const BookingEntry&)>;
  // All must outlive the BookingWarnings.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;  // for names
    const config::Config& config;
    const GpuTable& gpus;
    const Bookings& bookings;
    const LeaseManager& leases;
    Owners& owners;
    NoticeListener& listener;
    std::function<WallTime()> wall_clock;
    InTheWay in_the_way;  // leases that would have to leave
  };

  explicit BookingWarnings(Parts parts) : parts_(std::move(parts)) {}

  // The bookings that the last daemon left: what was due until now is not told again.
  void restore();
  // How long before they begin bookings are told of may have changed.
  void on_config_change() { arm(); }
  void on_booking(const BookingNews& news);

 private:
  // Of what is due for this booking after `told`, the first.
  std::optional<WallTime> next_of(const BookingEntry& booking, WallTime told) const;
  void warn_in_time();
  void warn(const BookingEntry& booking, WallTime now);
  void warn_lease(const BookingEntry& booking, LeaseId id, WallTime now);
  void arm();

  Parts parts_;
  std::map<RequestId, WallTime> told_;  // what was due until then
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
