#include "daemon/gpus/gpu_finder.h"

#include "base/log.h"
#include "sys/machine_memory.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// A GPU without memory of its own gets the size of the machine's memory, where the driver reports
// no size.
void take_machine_memory(std::vector<GpuInfo>& gpus) {
  const auto memory = sys::read_machine_memory();
  for (GpuInfo& gpu : gpus) {
    if (memory && gpu.unified && gpu.memory.is_zero()) gpu.memory = memory->total;
  }
}

}  // namespace

Result<GpuFinder::Machine> GpuFinder::read(ports::GpuProbe& probe) {
  GPUROTA_ASSIGN_OR_RETURN(ports::DriverInfo driver, probe.read_driver());
  GPUROTA_ASSIGN_OR_RETURN(std::vector<GpuInfo> gpus, probe.read_gpus());
  take_machine_memory(gpus);
  std::vector<GpuLink> links = probe.read_links(gpus);
  return Machine{std::move(driver), std::move(gpus), std::move(links)};
}

bool GpuFinder::ask(std::chrono::milliseconds patience) {
  if (worker_.unfinished() != 0) return false;
  asked_ = loop_.now();
  return worker_.run_and_wait(
      patience, [probe = probe_] { return read(*probe); },
      [this](Result<Machine> machine) { on_answer(std::move(machine)); });
}

void GpuFinder::ask_again() {
  constexpr std::chrono::milliseconds kHangs = std::chrono::minutes(1);
  if (!driver_.error || ask(std::chrono::milliseconds(0))) return;
  if (loop_.now() - asked_ >= std::min(kHangs, patience_)) {
    no_gpus(Error{Code::kUnavailable, 0, kDriverHangs});
  }
}

void GpuFinder::no_gpus(Error why) {
  if (!driver_.error || driver_.error->message != why.message) {
    log::warn("no GPU can be seen, looking again every second", {{"error", why.message}});
  }
  driver_.error = std::move(why);
}

void GpuFinder::on_answer(Result<Machine> machine) {
  if (!machine) return no_gpus(std::move(machine).error());
  driver_ = {std::move(machine->driver), std::nullopt};
  log::info("GPUs found",
            {{"count", machine->gpus.size()}, {"driver", driver_.info->driver_version}});
  on_found_(machine->gpus, machine->links);
}

}  // namespace gpurota::daemon
