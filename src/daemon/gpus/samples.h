// Samples of the GPUs: the interface to ask for a sample, and the interface that handles samples.
// State thread only.
#pragma once

#include "core/gpu.h"
#include "core/time.h"

#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

class Samples {
 public:
  virtual ~Samples() = default;
  // Takes a sample at once, or as soon as the current sample is over.
  virtual void sample_soon(const GpuUuid& gpu) = 0;
  // Between samples, polls the list of compute processes once per `period`, and nothing else. Zero:
  // stops polling.
  virtual void poll_processes(const GpuUuid& gpu, Duration period) = 0;
};

class SampleListener {
 public:
  virtual ~SampleListener() = default;
  // A sample is about to be taken.
  virtual void before_sample(const GpuUuid& gpu) = 0;
  // `taken`: when it began.
  virtual void on_sample(GpuSample sample, TimePoint taken) = 0;
  // Whether the load of each process is needed: the GPU is used by several leases, or by a lease
  // and by processes without one.
  virtual bool wants_process_loads(const GpuUuid& gpu) const = 0;
  // The board's figures, once a second; the loads of processes less often, and only if they are
  // wanted.
  virtual void on_figures(const GpuUuid& gpu, GpuFigures figures) = 0;
  // The compute processes that a poll showed.
  virtual void on_polled(const GpuUuid& gpu, const std::vector<pid_t>& pids) = 0;
  // Whether the next sample should follow at once, as something waits for it.
  virtual bool is_hurried(const GpuUuid& gpu) const = 0;
  // The time until the next sample.
  virtual Duration period_of(const GpuUuid& gpu) const = 0;
};

}  // namespace gpurota::daemon
