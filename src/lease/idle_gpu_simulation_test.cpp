// Tests the promise of queue.md about idle GPUs with a lab in virtual time, from a seed: a request
// that free GPUs or free memory could serve waits for `keep_free_gpus` at the longest, whatever
// others have requested or booked. The check of what is free shares no code with the planner.
//
// GPUROTA_LAB_SEEDS=N runs N seeds instead of the usual few. A failure names its seed;
// GPUROTA_LAB_SEED=S runs only that one. GPUROTA_LAB_TABLE=1 prints the longest waits.
#include "lease/bookings.h"
#include "lease/request_queue.h"
#include "testing/effort.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr int kLabGpus = 8;
constexpr milliseconds kKeep = 60min;
constexpr milliseconds kMinUnbooked = 60min;
constexpr milliseconds kNoShow = 30min;
constexpr WallTime kEnd{24h * 12};
const Bytes kLabSize = gib(80);

// By the number of requested GPUs: the longest wait of requests that started.
using LongestWaits = std::map<int, milliseconds>;

class IdleLab {
 public:
  // `timed`: all work has a stated end. `peaceful`: nobody is hostile, and the machine is two
  // thirds full; else there is much more work than it can do.
  IdleLab(std::uint64_t seed, bool timed, bool peaceful, LongestWaits& waits)
      : random_(seed), timed_(timed), peaceful_(peaceful), crowded_(seed % 16 == 0), waits_(waits) {
    for (int i = 0; i < kLabGpus; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = GpuUuid{"GPU-" + std::to_string(i)};
      room.info.name = "H100";
      room.info.memory = room.capacity = kLabSize;
      rooms_.push_back(room);
    }
  }

  void run() {
    // A lease that never ends, which hostile requests wait for.
    if (!peaceful_ && chance(60)) {
      Request own = request(kHostile);
      own.placement.gpus = {rooms_[0].info.uuid};
      queue_.push_back(own);
    }
    settle();
    while (now_ < kEnd && !::testing::Test::HasFailure()) {
      advance();
      end_what_is_due();
      begin_bookings();
      end_unused();
      happen();
      settle();
    }
  }

  std::uint64_t started() const { return started_; }
  std::uint64_t ended_for_bookings() const { return ended_for_bookings_; }
  milliseconds longest_blocked() const { return longest_blocked_; }

 private:
  static constexpr uid_t kHostile = 99;

  struct Running {
    Occupant occupant;
    WallTime leaves;
    std::optional<WallTime> unused_since;  // if it is a booking not in use
  };
  struct Promise {
    Request request;
    Booked booked;
    bool is_used = false;  // whether its owner comes
    WallTime comes;        // and when
  };

  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  minutes some(int least, int most) { return minutes(pick(least, most)); }

  Request request(uid_t owner) {
    Request made;
    made.id = RequestId{++last_};
    made.owner = owner;
    made.user = std::to_string(owner);
    return made;
  }

  // --- what happens

  void happen() {
    const int what = pick(0, 99);
    if (what < (peaceful_ ? 10 : 55)) submit();
    if (what >= 55 && what < 65 && !peaceful_) attack();
    if (what >= 65 && what < 73) book();
    if (what >= 73 && what < 80) end_early();
    if (what >= 80 && what < 84) cancel();
    if (what >= 84 && what < 88) change_service();
    if (what == 88 && crowded_ && !peaceful_) fill_queue();
  }
  void submit() {
    Request wanted = request(static_cast<uid_t>(pick(1, 12)));
    wanted.kind = chance(6) ? LeaseKind::kFiller : LeaseKind::kRun;
    wanted.placement.count = chance(60) ? 1 : pick(2, kLabGpus);
    if (chance(10)) wanted.placement.gpus = {any_gpu()};
    if (chance(30)) {
      wanted.placement.memory = SizeSpec{gib(static_cast<std::uint64_t>(pick(1, 70))), 0};
    }
    if (timed_ || chance(40)) {
      wanted.lasts = some(5, 60 * 10);
    } else {
      wanted.unbooked_for = kMinUnbooked;
    }
    add(wanted);
  }
  // Requests that can never start, or that come and leave, and slices that are in the way of
  // everything.
  void attack() {
    Request wanted = request(kHostile);
    const int what = pick(0, 3);
    if (what == 0) wanted.placement.count = kLabGpus;
    if (what == 1) wanted.placement.gpus = {rooms_[0].info.uuid, any_gpu()};
    if (what == 1 && wanted.placement.gpus[0] == wanted.placement.gpus[1]) return;
    if (what == 2) wanted.placement.memory = SizeSpec{mib(1), 0};
    if (what == 3) {
      std::erase_if(queue_, [](const Request& each) { return each.owner == kHostile; });
      return;
    }
    wanted.unbooked_for = kMinUnbooked;
    add(wanted);
  }
  // Three accounts, each with as many requests as one account may have.
  void fill_queue() {
    for (uid_t owner = kHostile + 1; owner < kHostile + 4; ++owner) {
      for (int i = 0; i < 64; ++i) {
        Request wanted = request(owner);
        wanted.placement.count = kLabGpus;
        wanted.unbooked_for = kMinUnbooked;
        add(wanted);
      }
    }
  }
  void add(const Request& wanted) {
    if (queue_.size() > 400) return;
    arrived_[wanted.id] = now_;
    queue_.push_back(wanted);
  }
  void book() {
    Request wanted = request(static_cast<uid_t>(pick(1, 12)));
    wanted.kind = LeaseKind::kReservation;
    wanted.placement.count = chance(60) ? 1 : pick(2, kLabGpus);
    if (chance(20)) wanted.placement.gpus = {any_gpu()};
    if (chance(30)) {
      wanted.placement.memory = SizeSpec{gib(static_cast<std::uint64_t>(pick(1, 70))), 0};
    }
    wanted.lasts = some(10, 60 * 8);
    const WallTime from = now_ + some(1, 60 * 24 * 4);
    const auto others = bookings();
    const auto gpus = lease::book({queue_, rooms_, occupants(), topology_, others, &keeping_},
                                  wanted, from, now_);
    if (!gpus) return;
    Promise promise{wanted, {wanted.id, wanted.user, *gpus, from, from + *wanted.lasts}};
    promise.booked.uid = wanted.owner;
    promise.booked.placed = now_;
    promise.is_used = chance(70);
    promise.comes = from + (chance(50) ? 0min : some(1, 120));
    promises_.push_back(promise);
  }
  void end_early() {
    if (running_.empty()) return;
    Running& running =
        running_[static_cast<std::size_t>(pick(0, static_cast<int>(running_.size()) - 1))];
    if (running.occupant.uid != kHostile || chance(10)) running.leaves = now_;
    end_what_is_due();
  }
  void cancel() {
    if (queue_.empty()) return;
    const auto at = queue_.begin() + pick(0, static_cast<int>(queue_.size()) - 1);
    keeping_.forget(at->id);
    idle_.erase(at->id);
    queue_.erase(at);
  }
  void change_service() {
    GpuRoom& room = rooms_[static_cast<std::size_t>(pick(0, kLabGpus - 1))];
    const bool out = room.draining || room.in_unreserved_use || !room.unreserved_use.is_zero();
    const int what = out ? 3 : pick(0, 2);
    room.draining = what == 0;
    room.in_unreserved_use = what == 1;
    // Memory that belongs to no listed process reduces what slices may have.
    room.unreserved_use = what == 3 || what == 0 ? Bytes() : gib(what == 1 ? 10 : 1);
  }
  GpuUuid any_gpu() { return rooms_[static_cast<std::size_t>(pick(0, kLabGpus - 1))].info.uuid; }

  // --- time

  void advance() {
    WallTime next = now_ + some(1, 45);
    for (const Running& running : running_) next = std::min(next, running.leaves);
    for (const Promise& promise : promises_) {
      if (promise.booked.from > now_) next = std::min(next, promise.booked.from);
    }
    if (const auto change = keeping_.next_change(facts_)) next = std::min(next, now_ + *change);
    next = std::max(next, now_ + 1ms);
    const auto passed = std::chrono::duration_cast<milliseconds>(next - now_);
    count_idle(passed);
    keeping_.pass(facts_, passed);
    now_ = next;
  }
  void end_what_is_due() {
    std::erase_if(running_, [&](const Running& running) {
      const auto& ends = running.occupant.ends;
      return running.leaves <= now_ || (ends && *ends <= now_);
    });
  }

  // --- bookings

  std::vector<Booked> bookings(RequestId without = {}) const {
    std::vector<Booked> all;
    for (const Promise& each : promises_) {
      if (each.request.id != without) all.push_back(each.booked);
    }
    return all;
  }
  std::vector<Occupant> occupants(LeaseId without = {}) const {
    std::vector<Occupant> all;
    for (const Running& each : running_) {
      if (each.occupant.id != without) all.push_back(each.occupant);
    }
    return all;
  }
  void begin_bookings() {
    std::erase_if(promises_, [&](const Promise& each) { return each.booked.until <= now_; });
    const std::vector<Promise> all = promises_;
    for (const Promise& each : all) {
      if (each.booked.from <= now_) begin(each);
    }
  }
  void begin(const Promise& promise) {
    Request wanted = promise.request;
    wanted.lasts = std::chrono::duration_cast<milliseconds>(promise.booked.until - now_);
    const bool used = promise.is_used && promise.comes <= now_;
    const auto others = bookings(wanted.id);
    const std::vector<Request> nobody;
    for (int round = 0; round < 3; ++round) {
      const auto leases = occupants();
      const Beginning now = lease::begin({nobody, rooms_, leases, topology_, others, &keeping_},
                                         wanted, promise.booked, now_);
      if (!now.gpus.empty()) {
        std::erase_if(promises_, [&](const Promise& p) { return p.request.id == wanted.id; });
        Running& begun = start(wanted, now.gpus);
        begun.occupant.ends = begun.leaves = promise.booked.until;
        if (!used) begun.unused_since = now_;
        return;
      }
      end(now.evict);
      end(now.move_out);
      if (!used) return;
      check_leaving(promise, now.leaving, others);
      ended_for_bookings_ += now.leaving.size();
      end(now.leaving);
      if (now.why) return;
    }
  }
  // No lease ends for a booking that is younger than the lease, or where a free GPU would do.
  void check_leaving(const Promise& promise, const std::vector<LeaseId>& leaving,
                     const std::vector<Booked>& others) const {
    if (leaving.empty()) return;
    for (const Running& running : running_) {
      if (std::find(leaving.begin(), leaving.end(), running.occupant.id) == leaving.end()) continue;
      ASSERT_GE(running.occupant.since, promise.booked.placed) << "it was there before the booking";
      ASSERT_FALSE(running.occupant.ends) << "a stated time is never cut";
      ASSERT_NE(running.occupant.uid, promise.booked.uid) << "its owner's own work";
    }
    if (!promise.request.placement.gpus.empty()) return;
    const milliseconds lasts =
        std::chrono::duration_cast<milliseconds>(promise.booked.until - now_);
    int fitting = 0;
    for (const GpuRoom& room : rooms_) {
      fitting += fits_on(room, promise.request.placement, now_ + lasts, others) ? 1 : 0;
    }
    ASSERT_LT(fitting, promise.request.placement.count) << "a free GPU would have done";
  }
  void end(const std::vector<LeaseId>& leases) {
    std::erase_if(running_, [&](const Running& running) {
      return std::find(leases.begin(), leases.end(), running.occupant.id) != leases.end();
    });
  }
  void end_unused() {
    std::vector<LeaseId> unused;
    for (const Running& running : running_) {
      if (running.unused_since && now_ - *running.unused_since >= kNoShow) {
        unused.push_back(running.occupant.id);
      }
    }
    for (const LeaseId id : unused) {
      const auto others = bookings();
      const auto leases = occupants(id);
      const auto decision = decide({queue_, rooms_, leases, topology_, others, &keeping_}, now_);
      if (!decision.grants.empty()) end({id});
    }
  }

  // --- decisions

  void settle() {
    for (int round = 0; round < 1000; ++round) {
      for (Request& each : queue_) {
        each.waited = std::chrono::duration_cast<milliseconds>(now_ - arrived_[each.id]);
      }
      const auto promised = bookings();
      const auto leases = occupants();
      const QueueDecision decision =
          decide({queue_, rooms_, leases, topology_, promised, &keeping_}, now_);
      for (const auto& [id, error] : decision.impossible) drop(id);
      for (const Grant& grant : decision.grants) {
        const auto it = std::find_if(queue_.begin(), queue_.end(),
                                     [&](const Request& r) { return r.id == grant.request; });
        const Request granted = *it;
        std::vector<GpuUuid> gpus;
        for (const LeaseGpu& share : grant.gpus) gpus.push_back(share.uuid);
        keeping_.on_start(granted.id, gpus, facts_);
        note_wait(granted);
        start(granted, grant.gpus);
        drop(granted.id);
      }
      end(decision.evict);
      end(decision.move_out);
      if (decision.grants.empty() && decision.impossible.empty() && decision.evict.empty()) {
        facts_ = decision.keeping;
        return;
      }
    }
    FAIL() << "it does not settle";
  }
  void drop(RequestId id) {
    keeping_.forget(id);
    idle_.erase(id);
    std::erase_if(queue_, [&](const Request& request) { return request.id == id; });
  }
  Running& start(const Request& request, const std::vector<LeaseGpu>& gpus) {
    ++started_;
    Running running;
    running.occupant.id = LeaseId{++last_};
    running.occupant.kind = request.kind;
    running.occupant.user = request.user;
    running.occupant.uid = request.owner;
    running.occupant.gpus = gpus;
    running.occupant.since = now_;
    running.occupant.leaves_for_bookings =
        request.unbooked_for && request.kind != LeaseKind::kFiller;
    if (request.lasts) running.occupant.ends = now_ + *request.lasts;
    running.leaves = request.owner == kHostile ? WallTime::max() : now_ + some(5, 60 * 30);
    running_.push_back(running);
    return running_.back();
  }
  void note_wait(const Request& request) {
    // A named GPU may be taken for days.
    const bool counts = peaceful_ && request.placement.gpus.empty();
    if (request.kind == LeaseKind::kFiller || !counts) return;
    milliseconds& longest = waits_[wanted(request)];
    longest =
        std::max(longest, std::chrono::duration_cast<milliseconds>(now_ - arrived_[request.id]));
  }
  static int wanted(const Request& request) {
    return request.placement.gpus.empty() ? request.placement.count
                                          : static_cast<int>(request.placement.gpus.size());
  }

  // --- the second opinion

  // Whether this GPU can serve the request from now until `until`, beside bookings and all leases
  // but fillers.
  bool fits_on(const GpuRoom& room, const PlacementRequest& placement, WallTime until,
               const std::vector<Booked>& booked) const {
    const auto& named = placement.gpus;
    const bool meant =
        named.empty() || std::find(named.begin(), named.end(), room.info.uuid) != named.end();
    if (!meant || room.draining) return false;
    bool whole = false, any = false;
    Bytes sliced;
    const auto count = [&](const std::vector<LeaseGpu>& gpus) {
      for (const LeaseGpu& share : gpus) {
        if (share.uuid != room.info.uuid) continue;
        any = true;
        whole |= !share.limit;
        sliced += share.limit.value_or(Bytes());
      }
    };
    for (const Running& running : running_) {
      if (running.occupant.kind != LeaseKind::kFiller) count(running.occupant.gpus);
    }
    for (const Booked& booking : booked) {
      if (booking.from < until && booking.until > now_) count(booking.gpus);
    }
    if (!placement.memory) return !any && !room.in_unreserved_use;
    return !whole && sliced + placement.memory->bytes + room.unreserved_use <= room.capacity;
  }
  bool could_run_alone(const Request& request, const std::vector<Booked>& booked) const {
    const WallTime until = now_ + request.lasts.value_or(kMinUnbooked);
    const auto fitting = std::count_if(rooms_.begin(), rooms_.end(), [&](const GpuRoom& room) {
      return fits_on(room, request.placement, until, booked);
    });
    return fitting >= wanted(request);
  }
  // Time in which a request is protected does not count: the documented exception, for a day at
  // most.
  void count_idle(milliseconds passed) {
    const auto booked = bookings();
    for (const Request& request : queue_) {
      if (request.kind == LeaseKind::kFiller || request.owner >= kHostile) continue;
      if (facts_.protected_request || !could_run_alone(request, booked)) continue;
      milliseconds& idle = idle_[request.id];
      idle += passed;
      longest_blocked_ = std::max(longest_blocked_, idle);
      ASSERT_LE(idle, kKeep) << to_string(request.id) << " waits at "
                             << std::chrono::duration_cast<minutes>(now_.time_since_epoch()).count()
                             << " min although what it needs is free\n"
                             << picture();
    }
  }

  static std::string shares_text(const std::vector<LeaseGpu>& gpus) {
    std::string text;
    for (const LeaseGpu& share : gpus) {
      text += " " + share.uuid.value + (share.limit ? "/" + to_string(*share.limit) : "");
    }
    return text;
  }
  std::string time_text(const std::optional<WallTime>& time) const {
    if (!time || *time == WallTime::max()) return "never";
    return fmt::format("{:+}", std::chrono::duration_cast<minutes>(*time - now_).count());
  }
  std::string picture() const {
    std::string text;
    for (const Running& each : running_) {
      text += fmt::format("{} of {} until {}:{}\n", to_string(each.occupant.id), each.occupant.user,
                          time_text(each.occupant.ends), shares_text(each.occupant.gpus));
    }
    for (const Booked& each : bookings()) {
      text += fmt::format("{} booked {} to {}:{}\n", to_string(each.id), time_text(each.from),
                          time_text(each.until), shares_text(each.gpus));
    }
    for (const Request& each : queue_) {
      text += fmt::format(
          "{} of {} wants {} {} for {} min, blocked {} min\n", to_string(each.id), each.user,
          wanted(each), each.placement.memory ? to_string(each.placement.memory->bytes) : "whole",
          each.lasts ? std::chrono::duration_cast<minutes>(*each.lasts).count() : -1,
          std::chrono::duration_cast<minutes>(keeping_.blocked(each.id)).count());
    }
    for (const GpuRoom& room : rooms_) {
      text +=
          fmt::format("{}{}{} kept {} min\n", room.info.uuid.value,
                      room.draining ? " draining" : "", room.in_unreserved_use ? " in use" : "",
                      std::chrono::duration_cast<minutes>(keeping_.kept(room.info.uuid)).count());
    }
    for (const RequestId id : facts_.blocked) text += to_string(id) + " is blocked\n";
    for (const auto& [gpu, id] : facts_.planned_for) {
      text += gpu.value + " is planned for " + to_string(id) + "\n";
    }
    return text;
  }

  std::mt19937_64 random_;
  bool timed_, peaceful_, crowded_;
  LongestWaits& waits_;
  WallTime now_{};
  std::vector<GpuRoom> rooms_;
  Topology topology_;
  std::vector<Request> queue_;
  std::vector<Running> running_;
  std::vector<Promise> promises_;
  std::map<RequestId, WallTime> arrived_;
  std::map<RequestId, milliseconds> idle_;  // time in which it could have run alone
  Keeping keeping_{{.most = kKeep, .longest_wait = 24h}};
  KeepingFacts facts_;
  std::uint64_t last_ = 0, started_ = 0, ended_for_bookings_ = 0;
  milliseconds longest_blocked_{};
};

std::uint64_t setting(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(IdleGpu, IdleGpuServesAWaitingRequestInTime) {
  const std::uint64_t one = setting("GPUROTA_LAB_SEED", 0);
  const std::uint64_t first = one ? one : 1;
  const std::uint64_t last = one ? one : setting("GPUROTA_LAB_SEEDS", gpurota::testing::effort(8U));
  std::map<bool, LongestWaits> waits;
  std::uint64_t started = 0, ended = 0;
  milliseconds longest{};
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool timed = seed % 2 == 0;
    const bool peaceful = seed % 4 < 2;
    IdleLab lab(seed, timed, peaceful, waits[timed]);
    lab.run();
    started += lab.started();
    ended += lab.ended_for_bookings();
    longest = std::max(longest, lab.longest_blocked());
  }
  EXPECT_GT(started, 40 * (last - first + 1)) << "the lab was hardly used";
  if (!one) {
    EXPECT_GT(ended, (last - first + 1) / 4) << "hardly any work left for a booking";
    EXPECT_GT(longest, 30min) << "hardly anybody was kept waiting, so nothing was tried";
  }
  if (!setting("GPUROTA_LAB_TABLE", 0)) return;
  std::cout << "GPUs  longest wait in hours without anybody hostile: all work timed / some without "
               "an end\n";
  for (int gpus = 1; gpus <= kLabGpus; ++gpus) {
    const auto hours = [](milliseconds time) {
      return std::chrono::duration<double, std::ratio<3600>>(time).count();
    };
    std::cout << fmt::format("{:4}  {:8.1f} / {:8.1f}\n", gpus, hours(waits[true][gpus]),
                             hours(waits[false][gpus]));
  }
}

}  // namespace
}  // namespace gpurota::lease
