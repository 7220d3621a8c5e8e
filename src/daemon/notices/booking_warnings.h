// Notices before a booking begins, to its owner and to the owners of open-ended leases that would
// have to leave for it, at the times before_booking of [notify]. State thread only.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/bookings.h"
#include "daemon/leases/lease_tables.h"
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
    const LeaseTables& tables;
    Owners& owners;
    NoticeListener& listener;
    std::function<WallTime()> wall_clock;
    InTheWay in_the_way;  // leases that would have to leave
  };

  explicit BookingWarnings(Parts parts) : parts_(std::move(parts)) {}

  // Takes over the bookings of the last daemon. Notices whose time has passed are not sent again.
  void restore();
  // Call when the configuration may have changed the times of the notices.
  void on_config_change() { arm(); }
  void on_booking(const BookingNews& news);

 private:
  // When the next notice for this booking is due: the first one that is due after `told`.
  std::optional<WallTime> next_of(const BookingEntry& booking, WallTime told) const;
  void warn_in_time();
  void warn(const BookingEntry& booking, WallTime now);
  void warn_lease(const BookingEntry& booking, LeaseId id, WallTime now);
  void arm();

  Parts parts_;
  std::map<RequestId, WallTime> told_;  // notices due up to this time were sent
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
