// Finds the GPUs of the machine: asks the driver on a worker, and again every second until it
// answers. State thread only.
#pragma once

#include "core/gpu.h"
#include "daemon/gpus/driver_state.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace gpurota::daemon {

class GpuFinder {
 public:
  using OnFound =
      std::function<void(const std::vector<GpuInfo>& gpus, const std::vector<GpuLink>& links)>;
  static constexpr const char* kDriverHangs =
      "the NVIDIA driver has been asked for its GPUs and does not answer: if it goes on so, see "
      "the kernel's log (`dmesg`) and reboot";

  // Only the worker uses the probe, which may outlive this. `patience`: how long ask() waits before
  // it reports that the driver hangs.
  GpuFinder(ports::EventLoop& loop, std::shared_ptr<ports::GpuProbe> probe,
            std::chrono::milliseconds patience, OnFound on_found)
      : loop_(loop),
        patience_(patience),
        on_found_(std::move(on_found)),
        probe_(std::move(probe)),
        worker_(loop, "driver") {}

  // Asks, and waits. False: the driver has not answered within the patience; it may later.
  bool ask() { return ask(patience_); }
  // Asks the driver again if it has not answered successfully, unless it is being asked now.
  void ask_again();
  const DriverState& driver() const { return driver_; }

 private:
  struct Machine {
    ports::DriverInfo driver;
    std::vector<GpuInfo> gpus;
    std::vector<GpuLink> links;
  };
  static Result<Machine> read(ports::GpuProbe& probe);
  bool ask(std::chrono::milliseconds patience);
  void on_answer(Result<Machine> machine);
  void no_gpus(Error why);

  ports::EventLoop& loop_;
  std::chrono::milliseconds patience_;
  OnFound on_found_;
  std::shared_ptr<ports::GpuProbe> probe_;
  sys::Worker worker_;
  DriverState driver_;
  TimePoint asked_{};
};

}  // namespace gpurota::daemon
