// Who looks at the GPUs, for those who want to know more of one soon, and those whom a look concerns. State thread only.
#pragma once

#include "core/gpu.h"
#include "core/time.h"

#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

class Samples {
 public:
  virtual ~Samples() = default;
  // Looks as soon as the look under way, if there is one, is over.
  virtual void sample_soon(const GpuUuid& gpu) = 0;
  // Between the looks, glimpses: only which processes compute there, so often. Zero: no more.
  virtual void poll_processes(const GpuUuid& gpu, Duration period) = 0;
};

class SampleListener {
 public:
  virtual ~SampleListener() = default;
  // A look is about to begin.
  virtual void before_sample(const GpuUuid& gpu) = 0;
  // `taken`: when it began.
  virtual void on_sample(GpuSample sample, TimePoint taken) = 0;
  // Whether it matters how busy each process there keeps the GPU: several have it.
  virtual bool wants_process_loads(const GpuUuid& gpu) const = 0;
  // What the board says of itself, once a second; the processes less often, and only if they are wanted.
  virtual void on_figures(const GpuUuid& gpu, GpuFigures figures) = 0;
  // The compute processes that a glimpse showed.
  virtual void on_polled(const GpuUuid& gpu, const std::vector<pid_t>& pids) = 0;
  // Whether the next look should follow at once: something waits for its result.
  virtual bool is_hurried(const GpuUuid& gpu) const = 0;
  // Until the next look.
  virtual Duration period_of(const GpuUuid& gpu) const = 0;
};

}  // namespace gpurota::daemon
