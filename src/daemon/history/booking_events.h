// Events of bookings. State thread only.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/bookings.h"

namespace gpurota::daemon {

class BookingEvents final {
 public:
  // Both must outlive the BookingEvents.
  BookingEvents(Recorder& recorder, const GpuTable& gpus) : recorder_(recorder), gpus_(gpus) {}
  void on_booking(const BookingNews& news);

 private:
  Recorder& recorder_;
  const GpuTable& gpus_;
};

}  // namespace gpurota::daemon
