#include "daemon/gpus/sampler.h"

#include "base/log.h"
#include "sys/machine_memory.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// The period of samples while something waits for a sample to show that memory is free. A sample
// takes 20 µs (measured on an H100), so such samples cost less than a hundredth of a core.
constexpr Duration kHurriedPeriod = std::chrono::milliseconds(5);
// If a sample takes longer than this, the driver counts as hanging.
constexpr Duration kHangPatience = std::chrono::seconds(5);
// Settings change rarely: an administrator changes them by hand.
constexpr Duration kSettingsPeriod = std::chrono::seconds(2);
// A little less than a second, so that a sample each second is always followed by figures.
constexpr Duration kFiguresPeriod = std::chrono::milliseconds(900);
// Reading the loads of processes takes 3 ms of processor time on an H100
// (tests/gpu/nvml_figures.py).
constexpr Duration kLoadsPeriod = std::chrono::seconds(10);

// For a unified GPU, adds the available memory of the machine, which the GPU shares.
GpuSample read_sample(ports::GpuProbe& probe, const GpuInfo& gpu) {
  GpuSample sample = probe.read_sample(gpu);
  if (!gpu.unified || sample.machine_available) return sample;
  if (const auto memory = sys::read_machine_memory()) sample.machine_available = memory->available;
  return sample;
}

}  // namespace

Sampler::~Sampler() {
  for (auto& [uuid, gpu] : gpus_) gpu.worker->ask_to_end();
}

void Sampler::watch(const GpuInfo& gpu) {
  Watched& watched = gpus_[gpu.uuid];
  watched.info = gpu;
  watched.probe = make_probe_();
  watched.worker = std::make_unique<sys::Worker>(loop_, "sample-" + std::to_string(gpu.index));
  take_sample(watched);
}

void Sampler::sample_soon(const GpuUuid& gpu) {
  const auto it = gpus_.find(gpu);
  if (it == gpus_.end()) return;
  if (it->second.sampling) {
    it->second.again = true;
  } else {
    take_sample(it->second);
  }
}

void Sampler::take_sample(Watched& gpu) {
  gpu.sampling = true;
  gpu.again = false;
  gpu.begun = loop_.now();
  listener_->before_sample(gpu.info.uuid);
  const bool settings =
      gpu.settings_read == TimePoint{} || gpu.begun - gpu.settings_read >= kSettingsPeriod;
  if (settings) gpu.settings_read = gpu.begun;
  gpu.worker->run(
      [probe = gpu.probe, info = gpu.info, settings] {
        Sampled sampled{read_sample(*probe, info), std::nullopt};
        if (settings && sampled.sample.error.empty()) sampled.settings = probe->read_settings(info);
        return sampled;
      },
      [this, &gpu](Sampled sampled) { on_sampled(gpu, std::move(sampled)); });
  schedule(gpu, gpu.begun + std::max(period_, kHangPatience));
}

std::vector<ports::GpuProbe::Setting> Sampler::settings(const GpuUuid& gpu) const {
  const auto it = gpus_.find(gpu);
  return it == gpus_.end() ? Settings() : it->second.settings;
}

void Sampler::on_sampled(Watched& gpu, Sampled seen) {
  gpu.sampling = false;
  gpu.reported_hang = false;
  const TimePoint taken = gpu.begun;
  if (seen.settings) gpu.settings = std::move(*seen.settings);
  const bool answers = seen.sample.error.empty();
  listener_->on_sample(std::move(seen.sample), taken);
  if (answers) read_figures(gpu);
  if (gpu.sampling) return;  // the listener has asked for a sample
  if (gpu.again) return take_sample(gpu);
  const Duration period = listener_->period_of(gpu.info.uuid);
  const bool hurried = listener_->is_hurried(gpu.info.uuid);
  schedule(gpu, loop_.now() + (hurried ? std::min<Duration>(kHurriedPeriod, period) : period));
}

// Called after the sample, as reading figures takes longer. Hurried samples have no figures.
void Sampler::read_figures(Watched& gpu) {
  const TimePoint now = loop_.now();
  const bool fresh = gpu.figures_read != TimePoint{} && now - gpu.figures_read < kFiguresPeriod;
  if (gpu.reading_figures || fresh) return;
  gpu.reading_figures = true;
  gpu.figures_read = now;
  const bool due = gpu.loads_read == TimePoint{} || now - gpu.loads_read >= kLoadsPeriod;
  const bool loads = due && listener_->wants_process_loads(gpu.info.uuid);
  if (loads) gpu.loads_read = now;
  gpu.worker->run(
      [probe = gpu.probe, info = gpu.info, loads] { return probe->read_figures(info, loads); },
      [this, &gpu](GpuFigures figures) {
        gpu.reading_figures = false;
        listener_->on_figures(gpu.info.uuid, std::move(figures));
      });
}

void Sampler::poll_processes(const GpuUuid& gpu, Duration period) {
  const auto it = gpus_.find(gpu);
  if (it == gpus_.end() || it->second.poll_period == period) return;
  it->second.poll_period = period;
  if (period > Duration(0) && !it->second.poll_timer) poll_processes(it->second);
}

void Sampler::poll_processes(Watched& gpu) {
  const auto this_timer = std::move(gpu.poll_timer);
  if (gpu.poll_period <= Duration(0)) return;
  // Skip the poll while a sample is taken, as the sample shows more. Errors are ignored here:
  // samples report a driver that hangs.
  if (!gpu.sampling && !gpu.polling) {
    gpu.polling = true;
    gpu.worker->run([probe = gpu.probe, info = gpu.info] { return probe->read_compute_pids(info); },
                    [this, &gpu](const Result<std::vector<pid_t>>& pids) {
                      gpu.polling = false;
                      if (pids) listener_->on_polled(gpu.info.uuid, *pids);
                    });
  }
  gpu.poll_timer = loop_.add_timer(loop_.now() + gpu.poll_period, ports::Urgency::kSafety,
                                   [this, &gpu] { poll_processes(gpu); });
}

void Sampler::schedule(Watched& gpu, TimePoint when) {
  gpu.timer = loop_.add_timer(when, ports::Urgency::kHousekeeping, [this, &gpu] { on_timer(gpu); });
}

void Sampler::on_timer(Watched& gpu) {
  if (!gpu.sampling) return take_sample(gpu);
  if (!gpu.reported_hang) {
    gpu.reported_hang = true;
    log::error("the driver does not answer about a GPU",
               {{"gpu", gpu.info.uuid.value}, {"index", gpu.info.index}});
    GpuSample silent;
    silent.uuid = gpu.info.uuid;
    silent.error = "the driver does not answer";
    listener_->on_sample(std::move(silent), gpu.begun);
  }
  schedule(gpu, loop_.now() + kHangPatience);
}

}  // namespace gpurota::daemon
