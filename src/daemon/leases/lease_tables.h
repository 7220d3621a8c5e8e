// The leases, the requests that wait, and the bookings: one state. Plain data; state thread only.
//
// Made before everything that reads it. LeaseManager, Queue, Bookings and PastBookings change the
// tables that are named for them here, and carry out what follows; all others only read. A change
// is in the store before anybody hears of it.
#pragma once

#include "core/reason.h"
#include "daemon/leases/lease_entry.h"
#include "lease/available.h"
#include "lease/keeping.h"
#include "lease/reason.h"
#include "lease/request_queue.h"
#include "ports/history.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// A request that waits.
struct QueueEntry {
  RequestId id;
  AcquireRequest asked;
  WallTime since;
  TrackedProcess holder;
  lease::Waiting waiting;  // as last decided
  lease::Reason reason;
  bool here = true;                      // its client is connected; after a restart not yet
  std::optional<Author> cancelled_by{};  // set with its end
};

struct BookingEntry {
  RequestId id;
  AcquireRequest asked;  // a reservation; `lasts` is its length
  WallTime made;
  WallTime begins;
  std::vector<GpuUuid> kept;        // GPUs that are kept for it
  WallTime placed{};                // when the kept GPUs were chosen
  bool on_time = false;             // leases without a stated end leave when it begins
  bool used = false;                // such leases leave, as its owner uses it
  bool waits_for_use = false;       // its time has come, and such leases are all that is in its way
  TimePoint used_at{};              // when its owner asked for it
  std::string waits_for{};          // since then, besides leases that leave
  std::optional<Reason> trouble{};  // why it has not begun, though its time has come
  bool warned = false;              // its user has been told that it begins soon
  // Leases that make way for it in host memory, and since when each is being moved there.
  std::map<LeaseId, TimePoint> aside{};
  WallTime ends() const { return begins + *asked.lasts; }
};

struct LeaseTables {
  // Changed by LeaseManager.
  std::map<LeaseId, LeaseEntry> leases;
  // Grows whenever a process or a control group has come to a lease. Descendants of its processes
  // that are found later do not count.
  std::uint64_t membership_changes = 1;
  std::optional<Error> store_error;  // why nothing could be stored when that was last tried

  // Changed by Queue. All but the requests are as last decided.
  std::vector<QueueEntry> requests;   // in their order
  std::map<GpuUuid, RequestId> held;  // GPUs that are held for a request
  lease::Plans plans;
  lease::Keeping keeping;

  // Changed by Bookings.
  std::vector<BookingEntry> bookings;  // in the order of their times
  // Changed by PastBookings: those that have begun.
  std::map<RequestId, ports::StoredPastBooking> past_bookings;

  // Null: there is none of this number.
  LeaseEntry* find(LeaseId id) {
    const auto it = leases.find(id);
    return it == leases.end() ? nullptr : &it->second;
  }
  const LeaseEntry* find(LeaseId id) const {
    const auto it = leases.find(id);
    return it == leases.end() ? nullptr : &it->second;
  }
  QueueEntry* find_request(RequestId id) { return find_in(requests, id); }
  const QueueEntry* find_request(RequestId id) const { return find_in(requests, id); }
  BookingEntry* find_booking(RequestId id) { return find_in(bookings, id); }
  const BookingEntry* find_booking(RequestId id) const { return find_in(bookings, id); }

 private:
  template <class Entries>
  static auto find_in(Entries& entries, RequestId id) -> decltype(entries.data()) {
    const auto it = std::find_if(entries.begin(), entries.end(),
                                 [&](const auto& entry) { return entry.id == id; });
    return it == entries.end() ? nullptr : &*it;
  }
};

}  // namespace gpurota::daemon
