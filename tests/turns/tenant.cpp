// A tenant: one thread is the program, another does what libgpurota's helper thread does for it.
//
// The program fills its buffers with numbers of its own, reads them back, and compares.
#include "interposer/gate/gate.h"
#include "interposer/swap/mover.h"
#include "tests/turns/driver.h"
#include "tests/turns/message.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace turns_test {
namespace {

using namespace gpurota::interposer;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kPiece = 24 * kMiB;  // not a power of two, so that blocks differ in size
constexpr std::size_t kRead = 4096;

struct Buffer {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  unsigned value = 0;
};

bool never_captured() { return false; }

class Tenant {
 public:
  explicit Tenant(const TenantOptions& options)
      : options_(options), random_(options.seed), gate_(new Gate()), space_(new SwapSpace()) {}

  int run() {
    if (!open_driver() || cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
      return 2;
    }
    calls_ = make_calls();
    space_->set_calls(&calls_);
    space_->host().set_limits(&calls_, options_.memory + 256 * kMiB, options_.memory + 256 * kMiB);
    gate_->set(GateState::kShut);
    // Pins host memory in advance, as the helper does in the background.
    while (space_->host().prepare(options_.memory)) continue;
    std::thread program([this] { run_program(); });
    while (!finished_) poll_once();
    program.join();
    say({Kind::kResult, 0, 0, 0, wrong_ ? 1u : 0u, 0, checks_, 0});
    return wrong_ ? 1 : 0;
  }

 private:
  // The helper.

  void say(const Message& message) {
    if (::send(options_.socket, &message, sizeof(message), MSG_NOSIGNAL) < 0) finish_ = true;
  }

  void poll_once() {
    pollfd p{options_.socket, POLLIN, 0};
    if (::poll(&p, 1, 1) > 0) {
      Message message{};
      if (::recv(options_.socket, &message, sizeof(message), 0) <= 0) {
        finish_ = finished_ = true;  // the daemon is gone
        gate_->set(GateState::kOpen);
        return;
      }
      take(message);
    }
    tell_status();
  }

  void take(const Message& m) {
    switch (m.kind) {
      case Kind::kGate:
        return set_gate(m);
      case Kind::kGranted:
      case Kind::kRefused:
        answer_ = m.kind == Kind::kGranted ? 1 : 2;
        return;
      case Kind::kEvict:
        return evict(m.bytes);
      case Kind::kRestore:
        return restore(m.bytes);
      case Kind::kFinish:
        finish_ = true;
        return;
      default:
        return;
    }
  }

  void set_gate(const Message& m) {
    seq_ = m.seq;
    told_ = false;
    if (m.order == 0) {
      Mover(*space_, nullptr, nullptr).forget_copies();
      gate_->set(GateState::kOpen);
    } else if (m.order == 1) {
      gate_->set(GateState::kShut);
    } else {
      gate_->let_one_through();
    }
  }

  // Reports "drained" when no thread is inside the gate and the GPU has finished its work.
  void tell_status() {
    const bool open = gate_->state() == GateState::kOpen;
    const bool busy = !gate_->wait_inside(now_ms()) || cuStreamQuery(stream_) != CUDA_SUCCESS ||
                      (open && working_);
    const std::uint32_t waiting = gate_->waiting();
    if (told_ && busy == was_busy_ && waiting == was_waiting_) return;
    told_ = true;
    was_busy_ = busy;
    was_waiting_ = waiting;
    say({Kind::kStatus, seq_, 0, waiting, busy ? 1u : 0u, 0, 0, 0});
  }

  static void on_evicted(void* self, std::uint64_t bytes, std::uint64_t /*clean*/) {
    static_cast<Tenant*>(self)->say({Kind::kEvicted, 0, 0, 0, 0, 0, bytes, 0});
  }
  static void on_restored(void* self, std::uint64_t bytes, std::uint64_t /*clean*/) {
    static_cast<Tenant*>(self)->say({Kind::kRestored, 0, 0, 0, 0, 0, bytes, 0});
  }

  void evict(std::uint64_t bytes) {
    gate_->set(GateState::kAway);
    if (!gate_->wait_inside(now_ms() + 10000)) wrong_ = true;
    const Moved moved = Mover(*space_, on_evicted, this).evict(bytes);
    const std::uint64_t left = moved.bytes < bytes ? bytes - moved.bytes : 0;
    const bool failed = moved.result != CUDA_SUCCESS;
    if (left > 0 || failed) say({Kind::kEvicted, 0, 0, 0, 0, failed ? 1u : 0u, 0, left});
  }

  // Restores blocks into the granted `room`. If the rest of the room is too small for another
  // block, the tenant returns the rest to the daemon, as the library does.
  void restore(std::uint64_t room) {
    const Moved moved = Mover(*space_, on_restored, this).restore(room);
    const std::uint64_t left = room - moved.bytes;
    const bool failed = moved.result != CUDA_SUCCESS;
    if (left > 0 || failed) say({Kind::kRestored, 0, 0, 0, 0, failed ? 1u : 0u, 0, left});
  }

  // The program.

  void run_program() {
    use_driver();
    while (buffers_size_ < options_.memory && !finish_) grow();
    auto phase_ends = std::chrono::steady_clock::now() + seconds(options_.work_seconds);
    while (!finish_) {
      if (options_.work_seconds > 0 && std::chrono::steady_clock::now() > phase_ends) {
        working_ = false;
        std::this_thread::sleep_for(seconds(options_.pause_seconds));
        phase_ends = std::chrono::steady_clock::now() + seconds(options_.work_seconds);
      }
      working_ = true;
      step();
    }
    finished_ = true;
  }

  static std::chrono::duration<double> seconds(double s) {
    return std::chrono::duration<double>(s);
  }

  // Like cuMemAlloc: asks for room first, which may take until this tenant has the turn, and then
  // allocates.
  void grow() {
    const std::uint64_t left = options_.memory - buffers_size_;
    const std::uint64_t size = left < kPiece ? left : kPiece;
    answer_ = 0;
    say({Kind::kGrow, 1, 0, 0, 0, 0, SwapSpace::cost(size), 0});
    while (answer_ == 0 && !finish_) std::this_thread::sleep_for(std::chrono::microseconds(100));
    GateGuard guard(*gate_, GateClass::kResidency, never_captured);
    std::uint64_t address = 0;
    if (answer_ != 1 || space_->allocate(size, &address) != CUDA_SUCCESS) {
      wrong_ = !finish_;
      finish_ = true;
      return;
    }
    buffers_.push_back({address, size, 0});
    buffers_size_ += size;
    fill(buffers_.back());
  }

  void fill(Buffer& buffer) {
    buffer.value = static_cast<unsigned>(random_());
    GateGuard guard(*gate_, GateClass::kSubmits, never_captured);
    if (cuMemsetD32Async(buffer.address, buffer.value, buffer.size / 4, stream_) != CUDA_SUCCESS) {
      wrong_ = true;
    }
  }

  void step() {
    Buffer& buffer = buffers_[random_() % buffers_.size()];
    if (random_() % 4 == 0) fill(buffer);
    const std::uint64_t offset = random_() % ((buffer.size - kRead) / 4) * 4;
    unsigned read[kRead / 4];
    {
      GateGuard guard(*gate_, GateClass::kSubmits, never_captured);
      if (cuMemcpyDtoHAsync_v2(read, buffer.address + offset, kRead, stream_) != CUDA_SUCCESS ||
          cuStreamSynchronize(stream_) != CUDA_SUCCESS) {
        wrong_ = true;
      }
    }
    for (unsigned word : read) {
      if (word == buffer.value) continue;
      std::fprintf(stderr, "a wrong byte: %08x instead of %08x\n", word, buffer.value);
      wrong_ = finish_ = true;
      return;
    }
    ++checks_;
  }

  const TenantOptions options_;
  std::mt19937_64 random_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<SwapSpace> space_;
  SwapCalls calls_{};
  CUstream stream_ = nullptr;
  std::vector<Buffer> buffers_;
  std::uint64_t buffers_size_ = 0;
  std::uint64_t checks_ = 0;
  std::uint32_t seq_ = 0;
  bool told_ = false;
  bool was_busy_ = false;
  std::uint32_t was_waiting_ = 0;
  std::atomic<int> answer_{0};
  std::atomic<bool> working_{false};
  std::atomic<bool> finish_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> wrong_{false};
};

}  // namespace

int run_tenant(const TenantOptions& options) { return Tenant(options).run(); }

}  // namespace turns_test
