// Notices to users about their bookings: a booking begins soon, has begun, cannot begin, or was
// cancelled by an administrator. Nobody holds a booking on a terminal, so these notices are sent
// only by the channels. State thread only.
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
