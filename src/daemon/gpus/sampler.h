// Samples the GPUs: periodically, and soon when asked to. State thread only; one worker thread for
// each GPU takes the samples, so that a GPU whose driver hangs delays no other.
#pragma once

#include "core/gpu.h"
#include "core/time.h"
#include "daemon/gpus/samples.h"
#include "ports/event_loop.h"
#include "ports/gpu_probe.h"
#include "sys/worker.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace gpurota::daemon {

class Sampler final : public Samples {
 public:
  // Each GPU is sampled through a probe of its own.
  using MakeProbe = std::function<std::unique_ptr<ports::GpuProbe>()>;
  Sampler(ports::EventLoop& loop, MakeProbe make_probe, Duration period)
      : loop_(loop), make_probe_(std::move(make_probe)), period_(period) {}
  ~Sampler() override;

  // Call before the first watch(). The listener must exist as long as a GPU is watched.
  void set_listener(SampleListener& listener) { listener_ = &listener; }

  void watch(const GpuInfo& gpu);
  // Takes effect with the next sample of each GPU.
  void set_period(Duration period) { period_ = period; }
  void sample_soon(const GpuUuid& gpu) override;
  void poll_processes(const GpuUuid& gpu, Duration period) override;
  // The GPU's settings; at most a few seconds old, unless the driver hangs.
  std::vector<ports::GpuProbe::Setting> settings(const GpuUuid& gpu) const;

 private:
  using Settings = std::vector<ports::GpuProbe::Setting>;
  struct Sampled {
    GpuSample sample;
    std::optional<Settings> settings;
  };
  struct Watched {
    GpuInfo info;
    std::shared_ptr<ports::GpuProbe>
        probe;  // shared with the worker, which may outlive this in a hung call
    std::unique_ptr<sys::Worker> worker;
    Settings settings;
    TimePoint settings_read{};
    TimePoint figures_read{};
    TimePoint loads_read{};  // of processes
    bool reading_figures = false;
    ports::EventLoop::SourcePtr timer;
    bool sampling = false;
    bool again = false;
    bool reported_hang = false;
    TimePoint begun{};
    Duration poll_period{};
    ports::EventLoop::SourcePtr poll_timer;
    bool polling = false;
  };

  void take_sample(Watched& gpu);
  void on_sampled(Watched& gpu, Sampled seen);
  void read_figures(Watched& gpu);
  void schedule(Watched& gpu, TimePoint when);
  void on_timer(Watched& gpu);
  void poll_processes(Watched& gpu);

  ports::EventLoop& loop_;
  MakeProbe make_probe_;
  Duration period_;
  SampleListener* listener_ = nullptr;
  std::map<GpuUuid, Watched> gpus_;
};

}  // namespace gpurota::daemon
