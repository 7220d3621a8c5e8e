// The base of the daemon's unit tests: a machine with one GPU of 24 GiB, with fake time and fake
// processes. For *_test.cpp only; one thread.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {

inline const GpuUuid kGpu{"GPU-00000000-0000-0000-0000-000000000000"};

class FakeWorldTest : public ::testing::Test {
 protected:
  static GpuTable one_gpu() {
    GpuInfo info;
    info.uuid = kGpu;
    info.memory = gib(24);
    return GpuTable({info});
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  GpuTable gpus = one_gpu();
  config::Config config;
};

}  // namespace gpurota::daemon
