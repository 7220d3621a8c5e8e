#include "tests/driver/captures/measure.h"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace captures {
namespace {

constexpr int kPatienceMs = 60'000;  // a driver may take long to start
constexpr int kUnusable = 9;         // exit code: the driver is not usable

// A thread that runs the given function while the caller waits. Lives as long as its process.
class OtherThread {
 public:
  OtherThread() {
    std::thread([this] { work(); }).detach();
  }

  void run(const std::function<void()>& task) {
    std::unique_lock lock(mutex_);
    task_ = &task;
    changed_.notify_all();
    changed_.wait(lock, [this] { return task_ == nullptr; });
  }

 private:
  [[noreturn]] void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return task_ != nullptr; });
      (*task_)();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;
};

Outcome outcome_of(CUresult result, CUresult end) {
  if (end != CUDA_SUCCESS) return Outcome::kInvalidates;
  const bool answered = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY;
  return answered ? Outcome::kAllowed : Outcome::kRefused;
}

class Measurer {
 public:
  bool set_up() {
    if (!load_driver() || !scene_.set_up()) return false;
    load_capture_functions();
    other_.run([this] { (void)cuCtxSetCurrent(scene_.context); });
    return true;
  }

  Measured measure(const Cell& cell) {
    scene_.open(cell.stream_flags);
    on_its_thread(cell, [&] {
      if (cell.call->prepare) cell.call->prepare(scene_);
    });
    scene_.need(cuCtxSynchronize());
    Measured out;
    if (scene_.good) out = capture(cell);
    on_its_thread(cell, [&] { scene_.clean_up(); });
    scene_.close();
    return out;
  }

  // Whether calls that are forbidden in captures fail although no capture is under way.
  bool is_still_capturing() {
    CUdeviceptr pointer = 0;
    if (cuMemAlloc_v2(&pointer, kBytes) != CUDA_SUCCESS) return true;
    return cuMemFree_v2(pointer) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS;
  }

 private:
  void on_its_thread(const Cell& cell, const std::function<void()>& task) {
    if (cell.other_thread) return other_.run(task);
    task();
  }

  Measured capture(const Cell& cell) {
    begin(cell);
    Measured out;
    if (scene_.good) out.result = make_call(cell);
    if (scene_.joined != nullptr && cell.call->joins) come_back();
    out.end = end();
    if (scene_.good) out.outcome = outcome_of(out.result, out.end);
    return out;
  }

  void begin(const Cell& cell) {
    Scene& s = scene_;
    s.need(cuStreamBeginCapture_v2(s.capturing, cell.mode));
    s.need(cuMemsetD32Async(s.memory, 0, 16, s.capturing));
    s.need(cuEventRecord(s.recorded, s.capturing));
    if (cell.call->joins) {
      s.need(cuEventRecord(s.fork, s.capturing));
      s.need(cuStreamWaitEvent(s.joined, s.fork, 0));
      s.need(cuMemsetD32Async(s.memory + 4096, 0, 16, s.joined));
      come_back();
    }
    if (cell.call->inside) cell.call->inside(s);
  }

  // Joins the other stream's work into the capturing stream again before the capture ends.
  void come_back() {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    (void)cuStreamIsCapturing(scene_.joined, &status);
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || scene_.capturing == nullptr) return;
    (void)cuEventRecord(scene_.join, scene_.joined);
    (void)cuStreamWaitEvent(scene_.capturing, scene_.join, 0);
  }

  CUresult make_call(const Cell& cell) {
    CUresult result = CUDA_SUCCESS;
    on_its_thread(cell, [&] {
      CUstreamCaptureMode mode = cell.thread_mode;
      const bool differs = mode != CU_STREAM_CAPTURE_MODE_GLOBAL;
      if (differs) scene_.need(cuThreadExchangeStreamCaptureMode(&mode));
      result = cell.call->make(scene_);
      if (differs) scene_.need(cuThreadExchangeStreamCaptureMode(&mode));
    });
    return result;
  }

  CUresult end() {
    if (scene_.capturing == nullptr) return CUDA_ERROR_INVALID_HANDLE;  // the call destroyed it
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(scene_.capturing, &graph);
    if (graph != nullptr) (void)cuGraphDestroy(graph);
    return result;
  }

  Scene scene_;
  OtherThread other_;
};

struct Report {
  std::size_t index;
  Measured measured;
};

[[noreturn]] void measure_from(const std::vector<Cell>& cells, std::size_t first, int out) {
  Measurer measurer;
  if (!measurer.set_up()) ::_exit(kUnusable);
  for (std::size_t i = first; i < cells.size(); ++i) {
    const Report report = {i, measurer.measure(cells[i])};
    if (::write(out, &report, sizeof report) != sizeof report) ::_exit(1);
    if (measurer.is_still_capturing()) break;
  }
  ::_exit(0);
}

// Starts a child that measures, beginning at `next`, until the child ends. False if the child
// cannot use the driver.
bool run_child(const std::vector<Cell>& cells, std::size_t* next, std::vector<Measured>* all) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    measure_from(cells, *next, ends[1]);
  }
  ::close(ends[1]);
  pollfd waits = {ends[0], POLLIN, 0};
  Report report = {};
  bool hangs = false;
  while (!(hangs = ::poll(&waits, 1, kPatienceMs) <= 0) &&
         ::read(ends[0], &report, sizeof report) == sizeof report) {
    (*all)[report.index] = report.measured;
    *next = report.index + 1;
  }
  ::close(ends[0]);
  if (hangs) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kUnusable) return false;
  if (code != 0 && *next < cells.size()) {
    (*all)[(*next)++].outcome = hangs ? Outcome::kHangs : Outcome::kCrashes;
  }
  return true;
}

}  // namespace

std::vector<Measured> measure(const std::vector<Cell>& cells) {
  std::vector<Measured> all(cells.size());
  std::size_t next = 0;
  while (next < cells.size()) {
    if (!run_child(cells, &next, &all)) {
      std::fprintf(stderr, "the driver cannot be used (%zu of %zu cells are measured)\n", next,
                   cells.size());
      return next == 0 ? std::vector<Measured>{} : all;
    }
    if (next < cells.size()) {
      const Call& call = *cells[next - 1].call;
      std::fprintf(stderr, "another process goes on after %s (%s)\n", call.function,
                   call.aim.c_str());
    }
  }
  return all;
}

}  // namespace captures
