// Measures the cost of a decision of the queue on the state thread (lease/request_queue.h), on 16
// GPUs with up to 80 bookings. At most kMaxPlanned requests get plans. The data come from a fixed
// seed.
#include "lease/request_queue.h"

#include <benchmark/benchmark.h>

#include <random>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;

constexpr int kGpus = 16;
constexpr WallTime kNow{1000h};

struct Site {
  std::vector<Request> queue;
  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  std::vector<Booked> bookings;
  Topology topology;
  std::mt19937 random{7};
  bool ends;  // true: all leases and requests have an end; false: every second one

  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); }
  GpuUuid uuid(int gpu) const { return rooms[static_cast<std::size_t>(gpu)].info.uuid; }

  Site(int requests, int booked, bool all_end) : ends(all_end) {
    for (int gpu = 0; gpu < kGpus; ++gpu) add_gpu(gpu);
    for (int i = 0; i < booked; ++i) add_booking(i);
    for (int i = 0; i < requests; ++i) add_request(i);
  }

  // Adds a GPU with a slice on half of it; the slice of every second GPU has an end.
  void add_gpu(int gpu) {
    GpuRoom& room = rooms.emplace_back();
    room.info.index = gpu;
    room.info.uuid = GpuUuid{"GPU-" + std::to_string(gpu)};
    room.info.name = "H100";
    room.info.memory = gib(80);
    room.capacity = room.swap_capacity = gib(79);
    room.reserved = gib(40);
    room.leases = 1;
    Occupant& lease = leases.emplace_back();
    lease.id = LeaseId{static_cast<std::uint64_t>(gpu) + 1};
    lease.user = "user" + std::to_string(gpu % 5);
    lease.gpus = {LeaseGpu{room.info.uuid, gib(40), std::nullopt}};
    lease.since = kNow - 1h;
    if (gpu % 2 == 0 || ends) {
      lease.ends = kNow + std::chrono::minutes(pick(10, 3000));
    } else {
      lease.leaves_for_bookings = true;
    }
  }

  // Adds a booking. The bookings of one GPU follow each other for four weeks.
  void add_booking(int number) {
    Booked& booking = bookings.emplace_back();
    booking.id = RequestId{static_cast<std::uint64_t>(number) + 1000};
    booking.user = "booker" + std::to_string(number % 7);
    booking.uid = static_cast<uid_t>(2000 + number % 7);
    booking.gpus = {LeaseGpu{uuid(number % kGpus), std::nullopt, std::nullopt}};
    booking.from = kNow + 24h * (1 + 5 * (number / kGpus)) + std::chrono::minutes(pick(0, 1200));
    booking.until = booking.from + std::chrono::hours(pick(2, 72));
    booking.placed = kNow - 24h;
  }

  void add_request(int number) {
    Request& request = queue.emplace_back();
    request.id = RequestId{static_cast<std::uint64_t>(number) + 1};
    request.user = "user" + std::to_string(number % 20);
    request.owner = static_cast<uid_t>(1000 + number % 20);
    request.placement.count = number % 3 == 0 ? pick(2, 8) : 1;
    if (number % 4 == 1) request.placement.memory = SizeSpec{gib(45), 0};
    if (number % 2 == 0 || ends) {
      request.lasts = std::chrono::minutes(pick(30, 6000));
    } else {
      request.unbooked_for = 1h;
    }
    request.waited = std::chrono::minutes(pick(0, 600));
  }
};

// Arguments: requests, bookings, whether all work has an end.
void Decide(benchmark::State& state) {
  const Site site(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                  state.range(2) != 0);
  QueueView view{site.queue, site.rooms, site.leases, site.topology, site.bookings};
  std::size_t waiting = 0;
  for (auto _ : state) {
    const QueueDecision decision = decide(view, kNow);
    waiting = decision.waiting.size();
    benchmark::DoNotOptimize(&decision);
  }
  state.counters["waiting"] = static_cast<double>(waiting);
}
BENCHMARK(Decide)
    ->Args({1, 0, 0})
    ->Args({16, 80, 0})
    ->Args({kMaxPlanned, 0, 0})
    ->Args({kMaxPlanned, 80, 0})
    ->Args({kMaxPlanned, 80, 1})
    ->Args({4 * kMaxPlanned, 80, 0})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpurota::lease
