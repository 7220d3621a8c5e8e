// The leases, the requests that wait, and the bookings: one state. Plain data; state thread only.
//
// The tables are made before everything that reads them. LeaseManager, Queue, Bookings and
// PastBookings each change only the tables that are marked as theirs here, and carry out the
// consequences. All other code only reads. A change is in the store before anybody is notified of
// it.
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
  std::optional<Author> cancelled_by{};  // set when it ends, if a user cancelled it
};

struct BookingEntry {
  RequestId id;
  AcquireRequest asked;  // a reservation; `lasts` is its length
  WallTime made;
  WallTime begins;
  std::vector<GpuUuid> kept;   // GPUs that are kept for it
  WallTime placed{};           // when the kept GPUs were chosen
  bool on_time = false;        // leases without a stated end leave when it begins
  bool used = false;           // its owner uses it, so leases without a stated end leave
  bool waits_for_use = false;  // it is due, with only leases without a stated end in its way
  TimePoint used_at{};         // when the owner began to use it
  // The reason why it has not begun since `used_at`, besides leases that are leaving; empty: no
  // other reason.
  std::string waits_for{};
  std::optional<Reason> trouble{};  // why it has not begun, though its time has come
  bool warned = false;              // its user has been told that it begins soon
  // Leases that are moved to host memory for it, and since when each is being moved.
  std::map<LeaseId, TimePoint> aside{};
  WallTime ends() const { return begins + *asked.lasts; }
};

struct LeaseTables {
  // Changed by LeaseManager.
  std::map<LeaseId, LeaseEntry> leases;
  // Grows whenever a process or a control group has come to a lease. Descendants of its processes
  // that are found later do not count.
  std::uint64_t membership_changes = 1;
  std::optional<Error> store_error;  // why the last attempt to store failed; empty: it worked

  // Changed by Queue. Everything except `requests` is as of the last decision.
  std::vector<QueueEntry> requests;   // in their order
  std::map<GpuUuid, RequestId> held;  // GPUs that are held for a request
  lease::Plans plans;
  lease::Keeping keeping;

  // Changed by Bookings.
  std::vector<BookingEntry> bookings;  // in the order of their times
  // Changed by PastBookings: the bookings that have begun.
  std::map<RequestId, ports::StoredPastBooking> past_bookings;

  // Null: no lease has this number.
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
