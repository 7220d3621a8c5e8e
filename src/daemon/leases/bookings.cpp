#include "daemon/leases/bookings.h"

#include "base/log.h"
#include "base/text.h"
#include "core/end_warning.h"
#include "core/local_time.h"
#include "daemon/leases/lease_update.h"
#include "daemon/leases/request_rows.h"
#include "daemon/leases/user_allowance.h"
#include "lease/allowance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gpurota::daemon {
namespace {

// The pause between two checks of whether a booking whose time has come can begin.
constexpr Duration kBookingRetry = std::chrono::milliseconds(250);
// The GPUs of a booking are checked this long before it begins, if notify.before_end has no times.
constexpr Duration kWarnBefore = std::chrono::minutes(5);
// A lease that has to leave for a booking gets its time to leave this long before the booking
// begins: early enough for the earliest warning of an end, with a margin because bookings are
// reviewed only once a minute.
constexpr WallTime::duration kLeavingKnown =
    kLongestEndWarning +
    std::chrono::duration_cast<std::chrono::milliseconds>(2 * ports::kLongestWallWait);
// The longest that moving a lease to host memory may take before the lease ends instead: 80 GiB
// take 30 s over a slow bus (PCIe 3.0 x4).
constexpr Duration kLongestMove = std::chrono::minutes(1);
// Enough for weekly bookings for more than a year.
constexpr std::size_t kMostBookingsAtOnce = 60;

bool keeps_on(const config::Config& config) {
  return config.expired_reservation == config::Expired::kKeep;
}

// The leases, with the memory that swap leases keep on their GPUs when they are moved to host
// memory.
std::vector<lease::Occupant> occupants(const LeaseTables& tables, const Bookings::Parts& parts) {
  std::vector<lease::Occupant> occupants = parts.rooms.occupants();
  for (lease::Occupant& occupant : occupants) {
    const LeaseEntry* const entry = tables.find(occupant.id);
    if (!entry || !entry->lease.swap() || occupant.kind == LeaseKind::kFiller) continue;
    const auto stay = parts.stay_of(occupant.id);
    if (!stay) continue;
    occupant.stays = stay->stays;
  }
  return occupants;
}

// Like occupants() above, for a booking that is moving some of the leases to host memory. A lease
// that is in host memory for another booking counts as if it were on its GPUs: a booking must not
// begin because of memory that another booking has freed.
std::vector<lease::Occupant> occupants(const LeaseTables& tables, const Bookings::Parts& parts,
                                       const BookingEntry& booking) {
  std::vector<lease::Occupant> occupants = daemon::occupants(tables, parts);
  for (lease::Occupant& occupant : occupants) {
    if (!booking.aside.contains(occupant.id)) continue;
    const auto stay = parts.stay_of(occupant.id);
    occupant.moved_out = stay && stay->moved_out;
  }
  return occupants;
}

// The leases as they count when GPUs are promised: a reservation that the site lets continue after
// its time counts as having no end.
std::vector<lease::Occupant> lasting_occupants(const LeaseTables& tables,
                                               const Bookings::Parts& parts) {
  std::vector<lease::Occupant> occupants = daemon::occupants(tables, parts);
  if (!keeps_on(parts.config)) return occupants;
  for (lease::Occupant& occupant : occupants) {
    if (occupant.kind == LeaseKind::kReservation) occupant.ends.reset();
  }
  return occupants;
}

// The lease that the booking has become; null: the booking has not begun, or is over.
const LeaseEntry* lease_of(RequestId booking, const LeaseTables& tables) {
  for (const auto& [lease, entry] : tables.leases) {
    if (entry.booking == booking && !entry.cause) return &entry;
  }
  return nullptr;
}

bool is_no_show(WallTime since, WallTime now, const config::Config& config) {
  const auto patience = config.bookings.no_show;
  return patience != std::chrono::seconds(0) && now >= since + patience;
}

Duration warn_before(const config::Config& config) {
  const auto& times = config.notify.before_end;
  return times.empty() ? kWarnBefore : Duration(times.front());
}

lease::Request request_of(const BookingEntry& entry, WallTime from, const Bookings::Parts& parts) {
  lease::Request request;
  request.id = entry.id;
  request.kind = LeaseKind::kReservation;
  request.user = parts.processes.user_name(entry.asked.uid);
  request.placement = entry.asked.placement;
  request.uid = entry.asked.uid;
  request.most_compute = most_compute(parts.allowances.limits_of(request.uid), request.kind,
                                      request.placement.compute.least);
  if (!keeps_on(parts.config)) request.lasts = entry.ends() - from;
  return request;
}

// Leases that wait to be brought back to their GPUs. A booking comes first: it was accepted while
// these leases were parked, or beside them.
std::set<LeaseId> waiting_leases(const LeaseTables& tables) {
  std::set<LeaseId> waiting;
  for (const auto& [id, entry] : tables.leases) {
    if (entry.lease.park == ParkState::kWaiting) waiting.insert(id);
  }
  return waiting;
}

GpuRooms::Machine lasting_machine(const LeaseTables& tables, const Bookings::Parts& parts) {
  return {parts.rooms.list(), lasting_occupants(tables, parts), parts.rooms.booked(),
          parts.rooms.topology()};
}

std::vector<LeaseId> find_leaving(const BookingEntry& entry, const GpuRooms::Machine& machine,
                                  const Bookings::Parts& parts) {
  const WallTime now = parts.wall_clock();
  const lease::Booked booked = parts.rooms.booked_of(entry);
  const bool any =
      std::any_of(machine.leases.begin(), machine.leases.end(),
                  [&](const lease::Occupant& each) { return lease::leaves_for(each, booked); });
  if (!any || now >= entry.ends()) return {};
  const std::vector<lease::Request> nobody;
  auto others = machine.bookings;
  std::erase_if(others, [&](const lease::Booked& each) { return each.id == entry.id; });
  return lease::leaving_for({nobody, machine.rooms, machine.leases, machine.topology, others},
                            request_of(entry, std::max(entry.begins, now), parts), booked, now);
}

Error refusal(const BookingEntry& entry, const lease::NotBooked& why, WallTime now) {
  if (why.error.code != Code::kNoGpu) return why.error;
  const auto& placement = entry.asked.placement;
  const auto wanted =
      placement.gpus.empty() ? placement.count : static_cast<int>(placement.gpus.size());
  std::string text = fmt::format("{} of {} GPU{} can be had from {} to {}", why.fitting, wanted,
                                 wanted == 1 ? "" : "s", local_time_text(entry.begins, now),
                                 local_time_text(entry.ends(), now));
  if (!why.error.message.empty()) {
    text += ": " + why.error.message;
  } else if (why.obstacle) {
    text += ": " + reason_text(lease::booking_obstacle(*why.obstacle), now);
  }
  text += fmt::format("; ask for another time{} (gpurota calendar shows what is booked)",
                      placement.gpus.empty() ? ", or less" : " or other GPUs");
  return {Code::kLimit, 0, std::move(text)};
}

}  // namespace

std::string names_of(const std::vector<GpuUuid>& gpus, const GpuTable& table) {
  std::string text = gpus.size() == 1 ? "GPU" : "GPUs";
  const char* before = " ";
  for (const GpuUuid& gpu : gpus) {
    text += before + table.name_of(gpu);
    before = ", ";
  }
  return text;
}

BookingEntry Bookings::take(RequestId id) {
  BookingEntry* const at = tables_.find_booking(id);
  BookingEntry entry = std::move(*at);
  tables_.bookings.erase(tables_.bookings.begin() + (at - tables_.bookings.data()));
  return entry;
}

void Bookings::add(BookingEntry entry) {
  const auto at = std::upper_bound(
      tables_.bookings.begin(), tables_.bookings.end(), entry,
      [](const BookingEntry& a, const BookingEntry& b) { return a.begins < b.begins; });
  tables_.bookings.insert(at, std::move(entry));
}

Result<void> Bookings::restore() {
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredRequest> requests,
                           parts_.store.load_requests());
  for (const ports::StoredRequest& stored : requests) {
    if (!stored.begins || !stored.lasts) continue;
    BookingEntry entry{.id = stored.id,
                       .asked = asked_of(stored),
                       .made = stored.since,
                       .begins = *stored.begins,
                       .kept = stored.kept,
                       .placed = stored.placed.value_or(stored.since),
                       .on_time = stored.on_time,
                       .used = stored.used};
    // If the time of the warning is past, the last daemon has warned the user, or no daemon ran at
    // that time.
    entry.warned = parts_.wall_clock() >= entry.begins - warn_before(parts_.config);
    log::info("booking restored", {{"request", to_string(entry.id)}});
    add(std::move(entry));
  }
  // Review even without bookings: a lease may still be stored as leaving for a booking that is
  // gone.
  review_in(kBookingRetry);
  return {};
}

Result<std::vector<GpuUuid>> Bookings::place(const BookingEntry& entry,
                                             const std::vector<lease::Booked>& others,
                                             const std::vector<lease::Request>& first) const {
  // Only a new booking has no number yet.
  const auto without = entry.id == RequestId() ? std::set<LeaseId>() : waiting_leases(tables_);
  const auto rooms = parts_.rooms.machine_without(without).rooms;
  auto leases = lasting_occupants(tables_, parts_);
  std::erase_if(leases, [&](const lease::Occupant& each) { return without.contains(each.id); });
  const auto gpus =
      lease::book({first, rooms, leases, parts_.rooms.topology(), others},
                  request_of(entry, entry.begins, parts_), entry.begins, parts_.wall_clock());
  if (!gpus) return tl::unexpected(refusal(entry, gpus.error(), parts_.wall_clock()));
  std::vector<GpuUuid> kept;
  for (const LeaseGpu& share : *gpus) kept.push_back(share.uuid);
  return kept;
}

Result<void> Bookings::save(const BookingEntry& entry) {
  ports::StoredRequest row = row_of(entry.id, entry.asked);
  row.since = entry.made;
  row.begins = entry.begins;
  row.kept = entry.kept;
  row.placed = entry.placed;
  row.on_time = entry.on_time;
  row.used = entry.used;
  return parts_.store.save_request(row);
}

Result<void> Bookings::check(const AcquireRequest& request,
                             const std::vector<WallTime>& begins) const {
  const WallTime now = parts_.wall_clock();
  if (begins.empty()) return fail(Code::kInvalid, "a booking has a time at which it begins");
  if (begins.size() > kMostBookingsAtOnce) {
    return fail(Code::kInvalid,
                fmt::format("at most {} bookings are made at once, {} were asked for",
                            kMostBookingsAtOnce, begins.size()));
  }
  if (begins.front() <= now) {
    return fail(Code::kInvalid,
                fmt::format("{} is over: a booking begins later than now (gpurota reserve without "
                            "--at begins at once)",
                            local_time_text(begins.front(), now)));
  }
  if (request.placement.swap) {
    return fail(Code::kInvalid,
                "a booking cannot take turns, as nobody knows ahead who takes part: leave out "
                "--swap, or book a slice with --memory");
  }
  return {};
}

Result<std::vector<BookingEntry>> Bookings::planned(const AcquireRequest& request,
                                                    const std::vector<WallTime>& begins) const {
  std::vector<BookingEntry> entries;
  std::vector<lease::Booked> others = parts_.rooms.booked();
  const auto queue = parts_.order.requests();
  for (const WallTime at : begins) {
    BookingEntry entry{.id = {},
                       .asked = request,
                       .made = parts_.wall_clock(),
                       .begins = at,
                       .kept = {},
                       .placed = parts_.wall_clock()};
    GPUROTA_ASSIGN_OR_RETURN(entry.kept, place(entry, others, queue));
    others.push_back(parts_.rooms.booked_of(entry));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<void> Bookings::save_new(std::vector<BookingEntry>& entries) {
  const auto save_one = [this](BookingEntry& entry) -> Result<void> {
    GPUROTA_ASSIGN_OR_RETURN(entry.id, parts_.store.next_request_id());
    return save(entry);
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto saved = save_one(entries[i]);
    if (saved) continue;
    for (std::size_t k = 0; k < i; ++k) (void)parts_.store.remove_request(entries[k].id);
    return tl::unexpected(Error(saved.error()).context("cannot store the booking"));
  }
  return {};
}

Result<std::vector<RequestId>> Bookings::make(const AcquireRequest& request,
                                              std::vector<WallTime> begins, bool beyond_limits,
                                              bool on_time) {
  std::sort(begins.begin(), begins.end());
  GPUROTA_TRY(check(request, begins));
  if (!beyond_limits) {
    const std::string user = parts_.processes.user_name(request.uid);
    GPUROTA_TRY(parts_.allowances.check_booking(request, user, begins));
  }
  GPUROTA_ASSIGN_OR_RETURN(std::vector<BookingEntry> made, planned(request, begins));
  for (BookingEntry& entry : made) entry.on_time = on_time;
  GPUROTA_TRY(save_new(made));
  std::vector<RequestId> ids;
  for (BookingEntry& entry : made) {
    log::info("GPUs are booked", {{"request", to_string(entry.id)}, {"uid", request.uid}});
    ids.push_back(entry.id);
    const BookingEntry told = entry;
    add(std::move(entry));
    parts_.publish({.step = BookingStep::kMade, .booking = told});
  }
  arm();
  parts_.queue.poke();
  return ids;
}

bool Bookings::cancel(RequestId id, const std::string& why, const Author& by) {
  if (!tables_.find_booking(id)) return false;
  const BookingEntry entry = take(id);
  if (auto removed = parts_.store.remove_request(id); !removed) {
    log::error("cannot remove a booking from the store, it will be there after a restart",
               {{"request", to_string(id)}, {"error", removed.error().message}});
  }
  log::info("booking is cancelled", {{"request", to_string(id)}, {"reason", why}});
  parts_.publish({.step = BookingStep::kCancelled, .booking = entry, .why = why, .by = by});
  update_leaving();
  aside_.update();
  arm();
  parts_.queue.poke();
  return true;
}

void Bookings::on_lease_change() {
  const bool is_soon = !tables_.bookings.empty() &&
                       tables_.bookings.front().begins <= parts_.wall_clock() + kLeavingKnown;
  if (poked_ || (!is_soon && aside_.leases().empty())) return;
  poked_ = true;
  parts_.loop.post([this] {
    poked_ = false;
    review();
  });
}

void Bookings::review() {
  const WallTime now = parts_.wall_clock();
  std::vector<RequestId> soon, due, over;
  for (const BookingEntry& entry : tables_.bookings) {
    if (now >= entry.ends()) {
      over.push_back(entry.id);
    } else if (now >= entry.begins) {
      due.push_back(entry.id);
    } else if (!entry.warned && now >= entry.begins - warn_before(parts_.config)) {
      soon.push_back(entry.id);
    }
  }
  for (const RequestId id : over) miss(id);
  for (const RequestId id : due) begin(id);
  for (const RequestId id : soon) warn(id);
  end_unused();
  update_leaving();
  aside_.update();
  arm();
}

std::vector<LeaseId> Bookings::leaving_for(const BookingEntry& entry) const {
  return find_leaving(entry, lasting_machine(tables_, parts_), parts_);
}

void Bookings::update_leaving() {
  const WallTime known_until = parts_.wall_clock() + kLeavingKnown;
  const GpuRooms::Machine machine = lasting_machine(tables_, parts_);
  std::map<LeaseId, WallTime> leaving;  // for each lease, the earliest time
  for (const BookingEntry& entry : tables_.bookings) {
    if (entry.begins > known_until) break;
    for (const LeaseId lease : find_leaving(entry, machine, parts_)) {
      leaving.emplace(lease, entry.begins);
    }
  }
  std::vector<std::pair<LeaseId, std::optional<WallTime>>> changes;
  for (const auto& [id, entry] : tables_.leases) {
    const auto it = leaving.find(id);
    const auto when = it == leaving.end() ? std::nullopt : std::optional(it->second);
    if (entry.lease.leaves != when) changes.emplace_back(id, when);
  }
  for (const auto& [id, when] : changes) set_leaving(tables_, parts_.leases, id, when);
}

// Called while there is time to find other GPUs. A booking that named no GPUs gets other GPUs if
// leases without a stated end would have to leave for it.
void Bookings::warn(RequestId id) {
  BookingEntry* const it = tables_.find_booking(id);
  it->warned = true;
  BookingEntry checked = *it;
  const auto others = parts_.rooms.booked(id);
  checked.asked.placement.gpus = it->kept;
  checked.asked.placement.wishes = {};
  // Waiting requests are left out, because they were planned beside this booking.
  const auto as_kept = place(checked, others, {});
  const auto elsewhere = as_kept ? as_kept : place(*it, others, {});
  if (elsewhere && *elsewhere != it->kept) {
    it->kept = *elsewhere;
    it->placed = parts_.wall_clock();
    if (auto saved = save(*it); !saved) {
      log::error("cannot store a booking's new GPUs, keeping them all the same",
                 {{"request", to_string(id)}, {"error", saved.error().message}});
    }
    parts_.publish({.step = BookingStep::kMoved, .booking = *it, .why = as_kept.error().message});
    parts_.queue.poke();
  } else if (!elsewhere && !begins_when_used(*it, others)) {
    return parts_.publish(
        {.step = BookingStep::kTrouble, .booking = *it, .why = as_kept.error().message});
  }
  parts_.publish({.step = BookingStep::kSoon, .booking = *it});
}

bool Bookings::begins_when_used(const BookingEntry& entry,
                                const std::vector<lease::Booked>& others) const {
  const std::vector<lease::Request> nobody;
  const auto without = waiting_leases(tables_);
  const auto rooms = parts_.rooms.machine_without(without).rooms;
  auto leases = lasting_occupants(tables_, parts_);
  const lease::Booked booked = parts_.rooms.booked_of(entry);
  std::erase_if(leases, [&](const lease::Occupant& each) {
    return without.contains(each.id) || lease::leaves_for(each, booked);
  });
  lease::Request wanted = request_of(entry, entry.begins, parts_);
  wanted.placement.gpus = entry.kept;
  wanted.placement.wishes = {};
  return lease::book({nobody, rooms, leases, parts_.rooms.topology(), others}, wanted, entry.begins,
                     parts_.wall_clock())
      .has_value();
}

void Bookings::begin(RequestId id) {
  const BookingEntry entry = *tables_.find_booking(id);
  const WallTime now = parts_.wall_clock();
  const std::vector<lease::Request> nobody;
  const auto without = waiting_leases(tables_);
  const auto rooms = parts_.rooms.machine_without(without).rooms;
  auto leases = occupants(tables_, parts_, entry);
  std::erase_if(leases, [&](const lease::Occupant& each) { return without.contains(each.id); });
  const auto others = parts_.rooms.booked(id);
  lease::Request request = request_of(entry, now, parts_);
  request.most_compute = kMostComputeShare;  // it counted when the booking was made
  const lease::Beginning beginning =
      lease::begin({nobody, rooms, leases, parts_.rooms.topology(), others}, request,
                   parts_.rooms.booked_of(entry), now);
  const bool somebody_leaves = !beginning.leaving.empty() || !beginning.aside.empty();
  const bool waits_for_use = somebody_leaves && !entry.used && !entry.on_time;
  tables_.find_booking(id)->waits_for_use = waits_for_use;
  if (waits_for_use && !entry.waits_for_use)
    parts_.publish({.step = BookingStep::kReady, .booking = entry});
  if (somebody_leaves) {
    if (waits_for_use) return;
    const std::string owner = display_text(parts_.processes.user_name(entry.asked.uid), 32);
    const std::string why = entry.used
                                ? fmt::format("{} began to use booking {}", owner, to_string(id))
                                : fmt::format("booking {} of {} has begun", to_string(id), owner);
    for (const LeaseId lease : beginning.leaving) {
      parts_.leases.end(lease, EndCause::kBooking, why);
    }
    return move_aside(id, beginning.aside, why);
  }
  if (beginning.gpus.empty()) return make_room(entry, beginning);
  AcquireRequest asked = entry.asked;
  asked.booking = id;
  if (!entry.used) asked.unused_since = now;
  asked.lasts = entry.ends() - now;
  const auto made = parts_.leases.make(asked, beginning.gpus, id);
  if (!made) return set_trouble(id, lease::cannot_start_reason(made.error().error));
  (void)take(id);
  log::info("booking has begun",
            {{"request", to_string(id)}, {"lease", to_string((*made)->lease.id)}});
  parts_.publish({.step = BookingStep::kBegun, .booking = entry, .lease = *made});
  parts_.queue.poke();
}

void Bookings::move_aside(RequestId id, const std::vector<LeaseId>& leases,
                          const std::string& why) {
  for (const LeaseId lease : leases) {
    BookingEntry* const booking = tables_.find_booking(id);
    if (!booking) return;
    auto& aside = booking->aside;
    const auto [it, is_new] = aside.emplace(lease, parts_.loop.now());
    const bool is_late = parts_.loop.now() - it->second > kLongestMove;
    // The leases that were moved just now may have used up the host memory for this lease.
    if (!is_late && parts_.stay_of(lease)) {
      aside_.update();
      continue;
    }
    aside.erase(it);
    parts_.leases.end(lease, EndCause::kBooking,
                      why + (is_late ? ", and its memory could not be moved to the host in time"
                                     : ", and host memory has no room for its memory"));
  }
}

std::optional<uid_t> Bookings::owner_of(RequestId id) const {
  if (const BookingEntry* const entry = tables_.find_booking(id)) return entry->asked.uid;
  const LeaseEntry* const lease = lease_of(id, tables_);
  return lease ? std::optional(lease->lease.uid) : std::nullopt;
}

Result<ClaimedBooking> Bookings::claim(RequestId id) {
  if (const LeaseEntry* const lease = lease_of(id, tables_)) {
    const LeaseId begun = lease->lease.id;
    GPUROTA_TRY(parts_.leases.use(begun));
    return ClaimedBooking{.lease = begun};
  }
  BookingEntry* const it = tables_.find_booking(id);
  if (!it) {
    return fail(Code::kNotFound,
                fmt::format("there is no booking {}: it may be over, or cancelled", to_string(id)));
  }
  const WallTime now = parts_.wall_clock();
  if (now < it->begins) {
    return fail(Code::kInvalid, fmt::format("{} begins at {}, and cannot be used before",
                                            to_string(id), local_time_text(it->begins, now)));
  }
  if (!it->used) {
    it->used = true;
    it->used_at = parts_.loop.now();
    if (auto saved = save(*it); !saved) {
      it->used = false;
      return tl::unexpected(std::move(saved).error().context("cannot store that it is used"));
    }
  }
  begin(id);
  update_leaving();
  aside_.update();
  arm();
  if (const LeaseEntry* const lease = lease_of(id, tables_))
    return ClaimedBooking{.lease = lease->lease.id};
  const BookingEntry* const entry = tables_.find_booking(id);
  if (!entry) return fail(Code::kGone, to_string(id) + " is over");
  return ClaimedBooking{.why = entry->waits_for};
}

BookingEntry Bookings::take_ended(RequestId id) {
  BookingEntry entry = take(id);
  if (auto removed = parts_.store.remove_request(id); !removed) {
    log::error("cannot remove a booking from the store, the next start will",
               {{"request", to_string(id)}, {"error", removed.error().message}});
  }
  return entry;
}

void Bookings::end_unused() {
  std::vector<RequestId> bookings;
  for (const BookingEntry& entry : tables_.bookings) {
    const bool idle =
        entry.waits_for_use && is_no_show(entry.begins, parts_.wall_clock(), parts_.config);
    if (idle && parts_.queue.would_serve_without(std::nullopt, entry.id))
      bookings.push_back(entry.id);
  }
  std::vector<LeaseId> leases;
  for (const auto& [id, entry] : tables_.leases) {
    if (!entry.unused_since || entry.cause ||
        !is_no_show(*entry.unused_since, parts_.wall_clock(), parts_.config))
      continue;
    if (parts_.queue.would_serve_without(id, std::nullopt)) leases.push_back(id);
  }
  const auto no_show = parts_.config.bookings.no_show;
  for (const LeaseId id : aside_.find_idle(parts_.loop.now(), no_show)) leases.push_back(id);
  const std::string why = fmt::format("nobody used it for {}, and others wait for its GPUs",
                                      lease::duration_text(no_show));
  for (const RequestId id : bookings) {
    const BookingEntry entry = take_ended(id);
    parts_.publish({.step = BookingStep::kUnused, .booking = entry, .why = why});
    parts_.queue.poke();
  }
  for (const LeaseId id : leases) parts_.leases.end(id, EndCause::kReleased, why);
}

void Bookings::make_room(const BookingEntry& entry, const lease::Beginning& beginning) {
  const std::string user =
      fmt::format("{} ({})", display_text(parts_.processes.user_name(entry.asked.uid), 32),
                  to_string(entry.id));
  parts_.queue.send_away(beginning.evict, beginning.move_out, [&](LeaseId) { return user; });
  yield_expired(tables_, parts_.leases, parts_.config, entry.kept, user);
  tables_.find_booking(entry.id)->waits_for =
      beginning.why ? reason_text(*beginning.why, parts_.wall_clock()) : "";
  if (beginning.why) set_trouble(entry.id, *beginning.why);
}

void Bookings::set_trouble(RequestId id, Reason why) {
  BookingEntry* const it = tables_.find_booking(id);
  // Wait a little, because a filler, or a lease whose time is over, may still be ending.
  const Duration grace = parts_.config.grace + ports::kLongestWallWait / 6;
  const bool patient = parts_.wall_clock() < it->begins + grace ||
                       (it->used && parts_.loop.now() < it->used_at + grace);
  if (patient || it->trouble == why) return;
  it->trouble = std::move(why);
  const std::string text = reason_text(*it->trouble, parts_.wall_clock());
  log::warn("a booking cannot begin, trying again", {{"request", to_string(id)}, {"reason", text}});
  parts_.publish({.step = BookingStep::kTrouble, .booking = *it, .why = text});
}

void Bookings::miss(RequestId id) {
  const BookingEntry entry = take_ended(id);
  const std::string why =
      entry.trouble ? reason_text(*entry.trouble, parts_.wall_clock())
                    : std::string("gpurotad did not run then, or the clock was set forward");
  log::warn("a booking is over and has never begun", {{"request", to_string(id)}, {"reason", why}});
  parts_.publish({.step = BookingStep::kMissed, .booking = entry, .why = why});
  parts_.queue.poke();
}

void Bookings::arm() {
  timer_.reset();
  const auto& leases = tables_.leases;
  const bool unused = std::any_of(leases.begin(), leases.end(), [](const auto& each) {
    return each.second.unused_since && !each.second.cause;
  });
  if (tables_.bookings.empty() && !unused && aside_.leases().empty()) return;
  const WallTime now = parts_.wall_clock();
  Duration wait = ports::kLongestWallWait;
  for (const BookingEntry& entry : tables_.bookings) {
    if (entry.waits_for_use) continue;
    const Duration left = entry.begins - now;
    wait = std::min(wait, left > Duration(0) ? left : kBookingRetry);
    if (!entry.warned && left > Duration(0)) {
      wait = std::min(wait, std::max(left - warn_before(parts_.config), Duration(0)));
    }
  }
  review_in(wait);
}

void Bookings::review_in(Duration wait) {
  timer_ = parts_.loop.add_timer(parts_.loop.now() + wait, ports::Urgency::kSchedule, [this] {
    const auto this_timer = std::move(timer_);
    review();
  });
}

}  // namespace gpurota::daemon
