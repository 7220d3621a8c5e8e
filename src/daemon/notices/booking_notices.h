// Notices to users about their bookings: that one begins soon, that it has begun, that it cannot,
// and what an administrator does to it. Nobody holds a booking, so only the channels carry it.
// State thread only.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/bookings.h"
#include "daemon/notices/notice.h"

#include <functional>

namespace gpurota::daemon {

class BookingNotices final {
 public:
  // All must outlive the BookingNotices.
  struct Parts {
    const GpuTable& gpus;
    NoticeListener& listener;
    std::function<WallTime()> wall_clock;
  };
  explicit BookingNotices(Parts parts) : parts_(std::move(parts)) {}
  void on_booking(const BookingNews& news);

 private:
  std::string text_of(const BookingNews& news) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
