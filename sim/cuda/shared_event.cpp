#include "sim/cuda/shared_event.h"

#include "sim/state/machine.h"

#include <atomic>
#include <ctime>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sim {
namespace {

constexpr timespec kPause = {0, 50'000};
constexpr int kAliveCheckEvery = 200;  // pauses between checks that the other process lives

}  // namespace

struct SharedEvent::State {
  std::atomic<std::uint64_t> asked, finished;
  std::atomic<std::int32_t> pid;  // the process of the latest record
  std::atomic<std::uint64_t> start_time;
};

std::shared_ptr<SharedEvent> SharedEvent::create() {
  Fd file(::memfd_create("gpurota-sim-event", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), sizeof(State)) != 0) return nullptr;
  return open(std::move(file));
}

std::shared_ptr<SharedEvent> SharedEvent::open(Fd file) {
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || info.st_size != sizeof(State)) return nullptr;
  void* memory = ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::shared_ptr<SharedEvent>(
      new SharedEvent(std::move(file), static_cast<State*>(memory)));
}

SharedEvent::~SharedEvent() { ::munmap(state_, sizeof(State)); }

std::uint64_t SharedEvent::begin() {
  const std::int32_t pid = ::getpid();
  state_->pid = pid;
  state_->start_time = process_start_time(pid);
  return ++state_->asked;
}

void SharedEvent::done(std::uint64_t number) {
  std::uint64_t before = state_->finished;
  while (before < number && !state_->finished.compare_exchange_weak(before, number)) {
  }
}

std::uint64_t SharedEvent::latest() const { return state_->asked; }

bool SharedEvent::is_done(std::uint64_t number) const {
  return state_->finished >= number || process_start_time(state_->pid) != state_->start_time;
}

void SharedEvent::wait(std::uint64_t number) const {
  for (int pauses = 0; state_->finished < number; ++pauses) {
    if (pauses % kAliveCheckEvery == 0 && is_done(number)) return;
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace gpurota::sim
