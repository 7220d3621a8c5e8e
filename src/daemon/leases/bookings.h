// Bookings: a booking is kept from when it is made until it begins, and then becomes a lease of its
// owner. State thread only.
//
// lease/bookings.h decides whether GPUs can be booked and on which of them a booking begins;
// Bookings carries the decisions out. A booking is a request for a later time: it is in the store
// before its user hears of it, and becomes its lease in one transaction. Times are those of the
// wall clock, as are the ends of leases: if the clock is set, both move together.
#pragma once

#include "config/config.h"
#include "daemon/leases/allowances.h"
#include "daemon/leases/aside_leases.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/leases/queue.h"
#include "lease/bookings.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "ports/store.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

enum class BookingStep {
  kMade,
  kSoon,       // it begins soon
  kReady,      // its time has come, and it begins when it is used
  kMoved,      // other GPUs are kept for it
  kTrouble,    // its GPUs are not available
  kBegun,      // it is a lease now
  kCancelled,  //
  kMissed,     // its time is over, and it could not begin
  kUnused,     // nobody used it while somebody waited
};

// The result of Bookings::claim().
struct ClaimedBooking {
  std::optional<LeaseId> lease{};  // it has begun
  std::string why{};               // otherwise: what it waits for
};

struct BookingNews {
  BookingStep step;
  const BookingEntry& booking;
  const LeaseEntry* lease = nullptr;  // of kBegun
  std::string why{};                  // of kMoved, kTrouble, kCancelled, kMissed
  std::optional<Author> by{};         // of kCancelled
};

// "GPU 0", "GPUs 0, 2": the names of GPUs for people.
std::string names_of(const std::vector<GpuUuid>& gpus, const GpuTable& table);

class Bookings final {
 public:
  // All must outlive the Bookings.
  struct Parts {
    ports::EventLoop& loop;
    ports::Store& store;
    ports::Processes& processes;
    LeaseManager& leases;
    const GpuTable& gpus;
    Queue& queue;
    const QueueOrder& order;
    const GpuRooms& rooms;
    const Allowances& allowances;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    std::function<void(const BookingNews& news)> publish;
    // The memory that a swap lease keeps on its GPUs when the lease is moved to host memory.
    // Nothing: host memory has no room for the lease.
    std::function<std::optional<LeaseStay>(LeaseId lease)> stay_of;
    // As of AsideLeases::Parts.
    std::function<void(LeaseId lease, bool aside, const std::string& why)> set_aside;
  };

  Bookings(LeaseTables& tables, Parts parts)
      : tables_(tables),
        parts_(std::move(parts)),
        aside_({tables_, parts_.leases, parts_.gpus, parts_.rooms, parts_.processes,
                parts_.set_aside}) {}

  // Call after Queue::restore().
  Result<void> restore();

  // Makes a booking at each of these times: all of them, or none and an error that says what to do.
  // `beyond_limits`: the user's limits do not count. `on_time`: leases without a stated end leave
  // when a booking begins, used or not.
  Result<std::vector<RequestId>> make(const AcquireRequest& request, std::vector<WallTime> begins,
                                      bool beyond_limits, bool on_time = false);
  // The owner uses the booking: leases without a stated end leave for it. kNotFound: neither a
  // booking nor a lease that was a booking has this number; kInvalid: the booking's time has not
  // come.
  Result<ClaimedBooking> claim(RequestId id);
  // The owner of the booking, or of the lease that was this booking; nothing: there is neither.
  std::optional<uid_t> owner_of(RequestId id) const;
  // False: there is no booking of this number.
  bool cancel(RequestId id, const std::string& why, const Author& by);

  // The leases that leave if the booking is used, as far as they are known. If the booking's time
  // has come, the use begins now; otherwise the use begins at the booked time.
  std::vector<LeaseId> leaving_for(const BookingEntry& entry) const;
  // A lease has changed: a booking in trouble may wait for that, or the lease may have to leave for
  // a booking.
  void on_lease_change();

 private:
  // GPUs for the booking, beside the bookings `others`, and after the waiting requests `first`.
  Result<std::vector<GpuUuid>> place(const BookingEntry& entry,
                                     const std::vector<lease::Booked>& others,
                                     const std::vector<lease::Request>& first) const;
  // Whether the rules allow the bookings; does not check whether there are GPUs for them.
  Result<void> check(const AcquireRequest& request, const std::vector<WallTime>& begins) const;
  Result<std::vector<BookingEntry>> planned(const AcquireRequest& request,
                                            const std::vector<WallTime>& begins) const;
  Result<void> save(const BookingEntry& entry);
  // Stores the bookings, and gives each its number. All or none.
  Result<void> save_new(std::vector<BookingEntry>& entries);
  void add(BookingEntry entry);
  BookingEntry take(RequestId id);
  void review();
  void warn(RequestId id);
  // Whether only leases without a stated end will be in the way of the booking.
  bool begins_when_used(const BookingEntry& entry, const std::vector<lease::Booked>& others) const;
  // For each lease that has to leave for a booking within about a day, sets the time at which it
  // has to leave (set_leaving()).
  void update_leaving();
  // Moves these leases to host memory for the booking; those that cannot be moved end.
  void move_aside(RequestId id, const std::vector<LeaseId>& leases, const std::string& why);
  void begin(RequestId id);
  void make_room(const BookingEntry& entry, const lease::Beginning& beginning);
  // Takes out a booking that is over, from the store too.
  BookingEntry take_ended(RequestId id);
  // Ends the bookings, and the leases of bookings, that nobody uses while somebody waits.
  void end_unused();
  void set_trouble(RequestId id, Reason why);
  void miss(RequestId id);
  void arm();
  void review_in(Duration wait);

  LeaseTables& tables_;
  Parts parts_;
  AsideLeases aside_;
  bool poked_ = false;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
