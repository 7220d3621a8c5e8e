#include "burn/burn.h"

#include "base/text.h"
#include "base/threads.h"
#include "burn/gpu_load.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <unistd.h>

namespace gpurota::burn {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStep{100};
constexpr milliseconds kReadEvery{500};  // how often power and temperature are read
constexpr std::chrono::seconds kReportEvery{5};
// How long to wait for a thread that is blocked in the driver (a lost GPU, another lease's turn).
constexpr std::chrono::seconds kPatience{5};

int failed(const Error& error) {
  (void)std::fprintf(stderr, "gpurota burn: %s\n", display_text(error.message, 600).c_str());
  return kExitFailed;
}

// Blocks the signals that end the program, in this thread and in those it starts. An ignored signal
// (nohup, a shell's background job) stays ignored.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&set, signal);
    }
  }
  (void)::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

// The signal that arrived within `time`, or 0.
int wait_signal(const sigset_t& set, milliseconds time) {
  const timespec limit = {0, static_cast<long>(time.count()) * 1'000'000};
  const int signal = ::sigtimedwait(&set, nullptr, &limit);
  return signal > 0 ? signal : 0;
}

class Burner {
 public:
  Burner(const Driver& driver, const std::vector<Gpu>& gpus, const Options& options)
      : options_(options), out_(options.json ? stderr : stdout) {
    for (const Gpu& gpu : gpus) {
      loads_.push_back(std::make_unique<GpuLoad>(driver, gpu, options));
      reports_.push_back({gpu.index, gpu.uuid, gpu.name, {}});
    }
    said_.resize(loads_.size());
  }

  int run(const sigset_t& signals) {
    std::vector<std::thread> threads;
    for (const auto& load : loads_) {
      auto thread = start_thread([this, &load] { load->run(stop_); });
      if (!thread) ::_exit(failed(thread.error()));  // the other threads already run
      threads.push_back(std::move(*thread));
    }
    const int signal = wait_for_end(signals);
    stop_.set();
    const bool ended = wait_for_threads();
    read_sensors();
    finish(signal);
    const int code = exit_code(reports_, options_.duration ? signal : 0);
    if (!ended) ::_exit(code);  // a thread hangs in the driver
    for (std::thread& thread : threads) thread.join();
    return code;
  }

 private:
  bool all_done() const {
    return std::all_of(loads_.begin(), loads_.end(), [](const auto& l) { return l->is_done(); });
  }

  // Waits for the end; returns the signal that caused it, or 0.
  int wait_for_end(const sigset_t& signals) {
    const TimePoint started = now();
    TimePoint read_at = started, report_at = started + kReportEvery;
    while (!all_done()) {
      const TimePoint at = now();
      if (options_.duration && at - started >= *options_.duration) return 0;
      if (at >= read_at) {
        read_sensors();
        read_at = at + kReadEvery;
      }
      if (at >= report_at) {
        report();
        report_at = at + kReportEvery;
      }
      milliseconds wait = kStep;
      if (options_.duration) {
        wait = std::clamp(std::chrono::ceil<milliseconds>(started + *options_.duration - at),
                          milliseconds(1), kStep);
      }
      const int signal = wait_signal(signals, wait);
      if (signal != 0) return signal;
    }
    return 0;
  }

  bool wait_for_threads() const {
    const TimePoint deadline = now() + kPatience;
    while (!all_done()) {
      if (now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

  void read_sensors() {
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      Stats& stats = reports_[i].stats;
      const auto hottest = stats.temperature_c;
      const auto power = stats.power_watts;
      stats = loads_[i]->stats();
      stats.temperature_c = sensors_.temperature_c(loads_[i]->gpu());
      if (hottest) stats.temperature_c = std::max(stats.temperature_c.value_or(0), *hottest);
      // At the end the load has already stopped, so keep the last power reading under load.
      stats.power_watts =
          loads_[i]->is_done() && power ? power : sensors_.power_watts(loads_[i]->gpu());
    }
  }

  void report() {
    for (std::size_t i = 0; i < reports_.size(); ++i) {
      if (loads_[i]->is_done()) continue;
      say(progress_line(reports_[i], said_[i], options_.hold));
      said_[i] = reports_[i].stats;
    }
  }

  void finish(int signal) {
    bool failed = false, tested = false;
    for (const GpuReport& gpu : reports_) {
      say(summary_line(gpu, options_.hold));
      failed = failed || gpu.stats.error;
      tested = tested || gpu.stats.self_test;
    }
    if (!options_.json) return;
    const End end = failed        ? End::kFailed
                    : tested      ? End::kTested
                    : signal == 0 ? End::kTime
                                  : End::kSignal;
    (void)std::printf("%s\n", json_line(reports_, end).c_str());
    (void)std::fflush(stdout);
  }

  void say(const std::string& line) {
    (void)std::fprintf(out_, "%s\n", line.c_str());
    (void)std::fflush(out_);
  }

  const Options& options_;
  std::FILE* out_;
  Sensors sensors_;
  StopFlag stop_;
  std::vector<std::unique_ptr<GpuLoad>> loads_;
  std::vector<GpuReport> reports_;
  std::vector<Stats> said_;  // at the last progress line
};

}  // namespace

int burn(const Options& options) {
  const sigset_t signals = block_signals();
  // Number GPUs as nvidia-smi and gpurota do, unless the caller chose another order.
  (void)::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  const auto driver = load_driver();
  if (!driver) return failed(driver.error());
  const auto all = list_gpus(*driver);
  if (!all) return failed(all.error());
  const auto gpus = choose_gpus(*all, options.gpu_ids);
  if (!gpus) return failed(gpus.error());
  return Burner(*driver, *gpus, options).run(signals);
}

}  // namespace gpurota::burn
