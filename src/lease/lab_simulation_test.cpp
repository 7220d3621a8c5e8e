// A month in a lab of 20 users and 8 GPUs, in virtual time, from a seed. The queue's promises are
// checked by code that shares nothing with the queue. GPUs are lost, missing after a restart, and
// back with another index; they are split into MIG instances and made whole again.
//
// GPUROTA_LAB_SEEDS=N runs N seeds instead of the usual few. A failure names its seed;
// GPUROTA_LAB_SEED=S runs only that one.
#include "lease/request_queue.h"
#include "testing/effort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr int kGpus = 8;
constexpr int kUsers = 20;
constexpr WallTime kMonth{24h * 30};
const Bytes kSize = gib(80);

struct Running {
  Occupant occupant;
  WallTime leaves;  // the real end of its program; never after an enforced end
};

class LabSimulation {
 public:
  // `timed`: everything has an enforced end, so every wait has a limit.
  LabSimulation(std::uint64_t seed, bool timed) : random_(seed), timed_(timed) {
    for (int i = 0; i < kGpus; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = GpuUuid{"GPU-" + std::to_string(i)};
      room.info.name = i < 6 ? "H100" : "A100";
      room.info.memory = room.capacity = kSize;
      rooms_.push_back(room);
    }
  }

  void run() {
    while (now_ < kMonth && !::testing::Test::HasFailure()) {
      now_ = std::min(now_ + minutes(pick(1, 90)), next_end());
      end_what_is_due();
      const int what = pick(0, 99);
      if (what < 70) submit();
      if (what >= 70 && what < 78) end_early();
      if (what >= 78 && what < 81) cancel();
      if (what >= 81 && what < 83) change_service();
      if (what == 83) lose_or_find();
      if (what == 84) cut_or_join();
      settle();
    }
  }

  std::uint64_t granted() const { return granted_; }
  std::uint64_t instances() const { return last_instance_; }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  WallTime next_end() const {
    WallTime next = WallTime::max();
    for (const Running& running : running_) next = std::min(next, running.leaves);
    return std::max(next, now_ + milliseconds(1));
  }

  void end_what_is_due() {
    std::erase_if(running_, [&](const Running& running) { return running.leaves <= now_; });
  }

  void submit() {
    const int user = pick(1, kUsers);
    const auto mine = std::count_if(queue_.begin(), queue_.end(), [&](const Request& request) {
      return request.user == std::to_string(user);
    });
    if (mine >= 3) return;
    Request request;
    request.id = RequestId{++last_request_};
    request.user = std::to_string(user);
    request.kind = chance(8)    ? LeaseKind::kFiller
                   : chance(30) ? LeaseKind::kReservation
                                : LeaseKind::kRun;
    request.placement.count = chance(70) ? 1 : pick(2, kGpus);
    if (chance(15)) {
      std::set<int> named;
      for (int i = pick(1, 3); i > 0; --i) named.insert(pick(0, gpus() - 1));
      for (const int index : named)
        request.placement.gpus.push_back(rooms_[static_cast<std::size_t>(index)].info.uuid);
    }
    if (chance(35))
      request.placement.memory = SizeSpec{gib(static_cast<std::uint64_t>(pick(1, 80))), 0};
    const bool known = timed_ || request.kind == LeaseKind::kReservation || chance(40);
    if (known) request.lasts = minutes(pick(5, 60 * 12));
    arrived_[request.id] = {now_, bound_now(request)};
    queue_.push_back(std::move(request));
  }

  // The latest time at which the request starts if all ends are known: in the worst case, all
  // requests before it run one after the other, each until its enforced end.
  WallTime bound_now(const Request& request) const {
    WallTime last = now_;
    for (const Running& running : running_) {
      if (running.occupant.ends) last = std::max(last, *running.occupant.ends);
    }
    for (const Request& before : queue_) {
      if (before.id != request.id && before.lasts) last += *before.lasts;
    }
    return last + minutes(1);
  }

  void end_early() {
    if (running_.empty()) return;
    running_[static_cast<std::size_t>(pick(0, static_cast<int>(running_.size()) - 1))].leaves =
        now_;
    end_what_is_due();
  }

  void cancel() {
    if (queue_.empty()) return;
    queue_.erase(queue_.begin() + pick(0, static_cast<int>(queue_.size()) - 1));
  }

  void change_service() {
    GpuRoom& room = rooms_[static_cast<std::size_t>(pick(0, gpus() - 1))];
    const bool out = room.draining || room.in_unreserved_use;
    room.draining = !out && chance(50);
    room.in_unreserved_use = !out && !room.draining;
    room.unreserved_use = room.in_unreserved_use ? gib(10) : Bytes();
    disturb();
  }

  // Promises end with the GPUs that they were made for.
  void disturb() {
    promised_.clear();
    disturbed_ = true;
  }
  int gpus() const { return static_cast<int>(rooms_.size()); }

  // A lost GPU is in error, and a daemon that starts then does not find it. At least two GPUs stay.
  void lose_or_find() {
    const int what = pick(0, 2);
    if (what == 0) rooms_[static_cast<std::size_t>(pick(0, gpus() - 1))].error = "GPU is lost";
    if (what == 1) {
      for (std::size_t i = 0; i < rooms_.size();) {
        const bool goes = !rooms_[i].error.empty() && rooms_.size() > 2;
        if (goes) away_.push_back(rooms_[i]);
        goes ? void(rooms_.erase(rooms_.begin() + static_cast<long>(i))) : void(++i);
      }
    }
    if (what == 2) {
      for (GpuRoom& room : rooms_) room.error.clear();
      for (GpuRoom& room : away_) {
        room.error.clear();
        rooms_.insert(rooms_.begin() + pick(0, gpus()), room);
      }
      away_.clear();
    }
    for (std::size_t i = 0; i < rooms_.size(); ++i) rooms_[i].info.index = static_cast<int>(i);
    disturb();
  }

  bool is_held(const GpuRoom& room) const {
    return std::any_of(running_.begin(), running_.end(), [&](const Running& running) {
      const auto& gpus = running.occupant.gpus;
      return std::any_of(gpus.begin(), gpus.end(),
                         [&](const LeaseGpu& gpu) { return gpu.uuid == room.info.uuid; });
    });
  }

  // An administrator splits or joins a GPU that nobody uses. Its instances have new UUIDs each
  // time, as the driver makes them. Four GPUs stay whole, for requests that need a whole one.
  void cut_or_join() {
    const auto at = static_cast<std::size_t>(pick(0, gpus() - 1));
    const GpuRoom room = rooms_[at];
    const auto whole = std::count_if(rooms_.begin(), rooms_.end(), [](const GpuRoom& other) {
      return other.info.parent.value.empty() && !other.info.mig_enabled;
    });
    if (room.info.mig_enabled) {
      const auto is_of = [&](const GpuRoom& other) { return other.info.parent == room.info.uuid; };
      const auto is_in_use = [&](const GpuRoom& other) { return is_of(other) && is_held(other); };
      if (std::any_of(rooms_.begin(), rooms_.end(), is_in_use)) return;
      if (std::any_of(away_.begin(), away_.end(), is_in_use)) return;
      rooms_[at].info.mig_enabled = false;
      std::erase_if(rooms_, is_of);
      std::erase_if(away_, is_of);
    } else if (room.info.parent.value.empty() && whole > 4 && !is_held(room)) {
      rooms_[at].info.mig_enabled = true;
      const int parts = pick(1, 4);
      for (int i = 0; i < parts; ++i) {
        GpuRoom part = room;
        part.info.parent = room.info.uuid;
        part.info.uuid = GpuUuid{"MIG-" + std::to_string(++last_instance_)};
        part.info.memory = part.capacity = gib(static_cast<std::uint64_t>(10 * pick(1, 2)));
        rooms_.insert(rooms_.begin() + static_cast<long>(at) + 1, part);
      }
    }
    for (std::size_t i = 0; i < rooms_.size(); ++i) rooms_[i].info.index = static_cast<int>(i);
    disturb();
  }

  // Only requests that name a missing GPU or one that is too small, or that want more GPUs than
  // exist, are refused for good.
  void drop_impossible(const QueueDecision& decision) {
    for (const auto& [id, error] : decision.impossible) {
      const auto request =
          std::find_if(queue_.begin(), queue_.end(), [&](const Request& r) { return r.id == id; });
      ASSERT_NE(request, queue_.end());
      const auto& named = request->placement.gpus;
      const bool names_one = std::any_of(named.begin(), named.end(), [&](const GpuUuid& uuid) {
        return std::none_of(rooms_.begin(), rooms_.end(),
                            [&](const GpuRoom& room) { return room.info.uuid == uuid; });
      });
      ASSERT_TRUE(names_one || fitting_ever(*request) < wanted(*request)) << error.message;
      queue_.erase(request);
    }
  }

  std::vector<Occupant> occupants() const {
    std::vector<Occupant> list;
    for (const Running& running : running_) list.push_back(running.occupant);
    return list;
  }

  // Decides until nothing changes any more, like the daemon.
  void settle() {
    for (int round = 0; round < 20; ++round) {
      const auto leases = occupants();
      const QueueDecision decision = decide({queue_, rooms_, leases, {}}, now_);
      if (!decision.impossible.empty()) {
        drop_impossible(decision);
        continue;
      }
      check_order(decision, leases);
      carry_out(decision);
      if (!decision.evict.empty() || !decision.grants.empty()) continue;
      ASSERT_EQ(decision.waiting.size(), queue_.size());
      check_nothing_idle(decision);
      check_promises(decision);
      return;
    }
    FAIL() << "it does not come to rest";
  }

  void carry_out(const QueueDecision& decision) {
    for (const LeaseId id : decision.evict) {
      const auto it = std::find_if(running_.begin(), running_.end(),
                                   [&](const Running& r) { return r.occupant.id == id; });
      ASSERT_NE(it, running_.end());
      ASSERT_EQ(it->occupant.kind, LeaseKind::kFiller) << "only fillers are ended for others";
      running_.erase(it);
    }
    for (const Grant& grant : decision.grants) {
      const auto request = std::find_if(queue_.begin(), queue_.end(),
                                        [&](const Request& r) { return r.id == grant.request; });
      ASSERT_NE(request, queue_.end());
      ASSERT_EQ(grant.gpus.size(), request->placement.gpus.empty()
                                       ? static_cast<std::size_t>(request->placement.count)
                                       : request->placement.gpus.size());
      if (timed_ && !disturbed_ && request->kind != LeaseKind::kFiller) {
        ASSERT_LE(now_, arrived_.at(request->id).bound) << to_string(request->id);
      }
      Running running;
      running.occupant.id = LeaseId{++last_lease_};
      running.occupant.kind = request->kind;
      running.occupant.user = request->user;
      running.occupant.gpus = grant.gpus;
      if (request->lasts) running.occupant.ends = now_ + *request->lasts;
      running.leaves = running.occupant.ends && chance(50) ? *running.occupant.ends
                                                           : now_ + minutes(pick(1, 60 * 20));
      if (running.occupant.ends) running.leaves = std::min(running.leaves, *running.occupant.ends);
      running_.push_back(running);
      promised_.erase(request->id);
      queue_.erase(request);
      ++granted_;
      check_no_gpu_twice();
    }
  }

  // The independent check: no timelines, only what leases hold and when they end.

  struct Load {
    int whole = 0;
    Bytes sliced;
  };
  static Load load_of(const GpuUuid& gpu, const std::vector<Occupant>& leases, WallTime at,
                      bool fillers) {
    Load load;
    for (const Occupant& lease : leases) {
      if (lease.ends && *lease.ends <= at) continue;
      if (!fillers && lease.kind == LeaseKind::kFiller) continue;
      for (const LeaseGpu& share : lease.gpus) {
        if (share.uuid != gpu) continue;
        if (share.limit && lease.kind != LeaseKind::kFiller) {
          load.sliced += *share.limit;
        } else {
          ++load.whole;
        }
      }
    }
    return load;
  }
  void check_no_gpu_twice() const {
    for (const GpuRoom& room : rooms_) {
      const Load load = load_of(room.info.uuid, occupants(), now_, true);
      ASSERT_LE(load.whole, 1);
      if (load.whole == 1) {
        ASSERT_TRUE(load.sliced.is_zero());
      }
      ASSERT_LE(load.sliced, room.capacity);
      if (room.info.mig_enabled) {
        ASSERT_TRUE(load.whole == 0 && load.sliced.is_zero())
            << "its instances are what is given out";
      }
    }
  }
  // Several unnamed GPUs are all whole, or all instances.
  bool is_of_their_kind(const Request& request, const GpuRoom& room) const {
    if (!request.placement.gpus.empty() || request.placement.count < 2) return true;
    int whole = 0, instances = 0;
    for (const GpuRoom& each : rooms_) {
      if (each.info.mig_enabled) continue;
      ++(each.info.parent.value.empty() ? whole : instances);
    }
    const bool all_instances = whole < request.placement.count && instances > whole;
    return whole == 0 || room.info.parent.value.empty() != all_instances;
  }
  bool would_fit(const Request& request, const GpuRoom& room, const std::vector<Occupant>& leases,
                 WallTime at, bool fillers) const {
    const auto& named = request.placement.gpus;
    if (!named.empty() && std::find(named.begin(), named.end(), room.info.uuid) == named.end()) {
      return false;
    }
    if (room.draining || !room.error.empty() || room.info.mig_enabled) return false;
    if (!is_of_their_kind(request, room)) return false;
    const Load load = load_of(room.info.uuid, leases, at, fillers);
    if (load.whole > 0) return false;
    const bool whole = !request.placement.memory || request.kind == LeaseKind::kFiller;
    if (whole) return !room.in_unreserved_use && load.sliced.is_zero();
    return load.sliced + request.placement.memory->bytes + room.unreserved_use <= room.capacity;
  }
  int fitting(const Request& request, const std::vector<Occupant>& leases, WallTime at,
              bool fillers) const {
    return static_cast<int>(std::count_if(rooms_.begin(), rooms_.end(), [&](const GpuRoom& room) {
      return would_fit(request, room, leases, at, fillers);
    }));
  }
  // How many GPUs fit the request on an idle machine in which nothing is broken.
  int fitting_ever(const Request& request) const {
    const auto fits = [&](const GpuRoom& room) {
      const bool large =
          !request.placement.memory || request.placement.memory->bytes <= room.capacity;
      const auto& named = request.placement.gpus;
      const bool meant =
          named.empty() || std::find(named.begin(), named.end(), room.info.uuid) != named.end();
      return large && meant && !room.info.mig_enabled && is_of_their_kind(request, room);
    };
    return static_cast<int>(std::count_if(rooms_.begin(), rooms_.end(), fits));
  }
  static int wanted(const Request& request) {
    return request.placement.gpus.empty() ? request.placement.count
                                          : static_cast<int>(request.placement.gpus.size());
  }
  // When the request could start beside only these leases; max: unknown.
  WallTime earliest(const Request& request, const std::vector<Occupant>& leases) const {
    std::set<WallTime> times = {now_};
    for (const Occupant& lease : leases) {
      if (lease.ends) times.insert(*lease.ends);
    }
    for (const WallTime at : times) {
      if (fitting(request, leases, at, false) >= wanted(request)) return at;
    }
    return WallTime::max();
  }

  // No later request makes the first of the queue wait longer, or takes what is free for it.
  void check_order(const QueueDecision& decision, const std::vector<Occupant>& before) const {
    const auto head = std::find_if(queue_.begin(), queue_.end(), [&](const Request& request) {
      return request.kind != LeaseKind::kFiller &&
             std::none_of(decision.grants.begin(), decision.grants.end(),
                          [&](const Grant& grant) { return grant.request == request.id; });
    });
    if (head == queue_.end()) return;
    // `head` is the first request that gets nothing, so grants to requests before it are in order;
    // only grants to later requests can be wrong.
    std::vector<Occupant> first = before, all = before;
    for (const Grant& grant : decision.grants) {
      const auto request = std::find_if(queue_.begin(), queue_.end(),
                                        [&](const Request& r) { return r.id == grant.request; });
      Occupant made{LeaseId{}, request->kind, {}, grant.gpus, {}, false};
      if (request->lasts) made.ends = now_ + *request->lasts;
      all.push_back(made);
      if (request < head) first.push_back(made);
    }
    if (fitting(*head, {}, now_, true) < wanted(*head)) return;  // out of service: holds nothing
    const WallTime alone = earliest(*head, first);
    ASSERT_LE(earliest(*head, all), alone);
    if (alone == WallTime::max()) {
      ASSERT_GE(std::min(fitting(*head, all, now_, false), wanted(*head)),
                std::min(fitting(*head, first, now_, false), wanted(*head)));
    }
  }

  // If a waiting request would fit now, an earlier request makes it wait. A filler that would fit
  // never waits.
  void check_nothing_idle(const QueueDecision& decision) const {
    const auto leases = occupants();
    bool somebody_before = false;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const Request& request = queue_[i];
      const bool filler = request.kind == LeaseKind::kFiller;
      const bool fits = fitting(request, leases, now_, filler) >= wanted(request);
      if (filler) {
        ASSERT_FALSE(fits) << "a filler waits although a GPU is idle";
        continue;
      }
      ASSERT_FALSE(fits && !somebody_before) << "an idle GPU was not given to the first who waits";
      // Only a request with a plan may make others wait.
      const auto waiting = std::find_if(decision.waiting.begin(), decision.waiting.end(),
                                        [&](const Waiting& w) { return w.request == request.id; });
      ASSERT_NE(waiting, decision.waiting.end());
      somebody_before = somebody_before || !waiting->planned.empty();
    }
  }

  // A time once promised to the first of the queue never becomes later.
  void check_promises(const QueueDecision& decision) {
    const auto first = std::find_if(queue_.begin(), queue_.end(), [](const Request& request) {
      return request.kind != LeaseKind::kFiller;
    });
    if (first == queue_.end()) return;
    const bool in_service = fitting(*first, {}, now_, true) >= wanted(*first);
    const WallTime known_start = earliest(*first, occupants());
    for (const Waiting& waiting : decision.waiting) {
      if (waiting.request != first->id) continue;
      if (in_service && known_start != WallTime::max()) {
        ASSERT_TRUE(waiting.expected) << "the leases' ends tell when it can start";
        ASSERT_EQ(*waiting.expected, known_start);
      }
      if (!waiting.expected) continue;
      const auto known = promised_.find(waiting.request);
      if (known != promised_.end()) {
        ASSERT_LE(*waiting.expected, known->second);
      }
      promised_[waiting.request] = *waiting.expected;
    }
    for (const auto& [id, time] : promised_) {
      if (id == first->id) {
        ASSERT_LT(now_, time) << to_string(id) << " was promised a GPU and has none";
      }
    }
  }

  struct Arrival {
    WallTime at;
    WallTime bound;
  };
  std::mt19937_64 random_;
  bool timed_;
  bool disturbed_ = false;
  WallTime now_{};
  std::vector<GpuRoom> rooms_;
  std::vector<GpuRoom> away_;  // GPUs that the daemon does not find
  std::vector<Request> queue_;
  std::vector<Running> running_;
  std::map<RequestId, WallTime> promised_;
  std::map<RequestId, Arrival> arrived_;
  std::uint64_t last_request_ = 0, last_lease_ = 0, last_instance_ = 0, granted_ = 0;
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(LabSimulation, AMonthOfTwentyUsersKeepsEveryPromise) {
  const std::uint64_t one = number_from("GPUROTA_LAB_SEED", 0);
  const std::uint64_t first = one ? one : 1;
  const std::uint64_t last = one ? one : number_from("GPUROTA_LAB_SEEDS", testing::effort(6U));
  std::uint64_t granted = 0, instances = 0;
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LabSimulation lab(seed, seed % 3 == 0);
    lab.run();
    granted += lab.granted();
    instances += lab.instances();
  }
  EXPECT_GT(instances, last - first) << "hardly any GPU was cut";
  EXPECT_GT(granted, 100 * (last - first + 1)) << "the lab was hardly used";
  RecordProperty("grants", static_cast<int>(granted));
}

}  // namespace
}  // namespace gpurota::lease
