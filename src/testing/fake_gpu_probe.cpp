#include "testing/fake_gpu_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace gpurota::testing {

GpuInfo FakeGpuProbe::add_gpu(Bytes memory, const std::string& name) {
  const std::lock_guard lock(mutex_);
  Gpu gpu;
  gpu.info.index = static_cast<int>(std::count_if(
      gpus_.begin(), gpus_.end(), [](const Gpu& g) { return g.info.parent.value.empty(); }));
  gpu.info.uuid.value = fmt::format("GPU-00000000-0000-0000-0000-{:012x}", gpu.info.index);
  gpu.info.name = name;
  gpu.info.pci = fmt::format("00000000:{:02x}:00.0", gpu.info.index + 1);
  gpu.info.memory = memory;
  gpu.info.compute_major = 9;
  gpus_.push_back(gpu);
  return gpu.info;
}

GpuInfo FakeGpuProbe::add_unified_gpu(Bytes memory) {
  const GpuUuid uuid = add_gpu(memory, "Fake GB10").uuid;
  const std::lock_guard lock(mutex_);
  Gpu* const added = find(uuid);
  added->info.unified = true;
  added->machine_available = memory;
  return added->info;
}

void FakeGpuProbe::set_machine_available(const GpuUuid& gpu, Bytes available) {
  const std::lock_guard lock(mutex_);
  if (Gpu* found = find(gpu)) found->machine_available = available;
}

GpuInfo FakeGpuProbe::add_mig(const GpuUuid& parent, Bytes memory) {
  const std::lock_guard lock(mutex_);
  const auto at =
      std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& g) { return g.info.uuid == parent; });
  if (at == gpus_.end()) return {};
  at->info.mig_enabled = true;
  auto end = std::next(at);
  while (end != gpus_.end() && end->info.parent == parent) ++end;
  Gpu gpu;
  gpu.info = at->info;
  gpu.info.index = static_cast<int>(end - at) - 1;
  gpu.info.uuid.value =
      fmt::format("MIG-00000000-0000-0000-{:04x}-{:012x}", at->info.index, gpu.info.index);
  gpu.info.name += " MIG";
  gpu.info.memory = memory;
  gpu.info.parent = parent;
  gpu.info.mig_enabled = false;
  gpus_.insert(end, gpu);
  return gpu.info;
}

void FakeGpuProbe::set_process(const GpuUuid& gpu, pid_t pid, std::optional<Bytes> used,
                               bool graphics) {
  const std::lock_guard lock(mutex_);
  if (Gpu* found = find(gpu)) found->processes[pid] = GpuProcess{pid, used, graphics};
}

void FakeGpuProbe::remove_process(pid_t pid) {
  const std::lock_guard lock(mutex_);
  for (Gpu& gpu : gpus_) gpu.processes.erase(pid);
}

void FakeGpuProbe::set_unattributed(const GpuUuid& gpu, Bytes used) {
  const std::lock_guard lock(mutex_);
  if (Gpu* found = find(gpu)) found->unattributed = used;
}

void FakeGpuProbe::set_figures(const GpuUuid& gpu, const GpuFigures& figures) {
  const std::lock_guard lock(mutex_);
  if (Gpu* found = find(gpu)) found->figures = figures;
}

void FakeGpuProbe::set_load(const GpuUuid& gpu, std::optional<int> percent) {
  const std::lock_guard lock(mutex_);
  if (Gpu* found = find(gpu)) found->load = percent;
}

GpuFigures FakeGpuProbe::read_figures(const GpuInfo& gpu, bool processes) {
  const std::lock_guard lock(mutex_);
  const Gpu* const found = find(gpu.uuid);
  if (!found || !found->error.empty() || failure_) return {};
  GpuFigures figures = found->figures;
  if (!processes) figures.processes.reset();
  return figures;
}

void FakeGpuProbe::set_error(const GpuUuid& gpu, const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (Gpu* found = find(gpu)) found->error = error;
}

void FakeGpuProbe::set_failure(Error error) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(error);
}

void FakeGpuProbe::clear_failure() {
  const std::lock_guard lock(mutex_);
  failure_.reset();
}

void FakeGpuProbe::block(const GpuUuid& gpu) {
  const std::lock_guard lock(mutex_);
  if (Gpu* found = find(gpu)) found->blocked = true;
}

void FakeGpuProbe::block_driver() {
  const std::lock_guard lock(mutex_);
  driver_blocked_ = true;
}

std::unique_lock<std::mutex> FakeGpuProbe::ask_driver() {
  std::unique_lock lock(mutex_);
  unblocked_.wait(lock, [this] { return !driver_blocked_; });
  return lock;
}

void FakeGpuProbe::unblock() {
  const std::lock_guard lock(mutex_);
  for (Gpu& gpu : gpus_) gpu.blocked = false;
  driver_blocked_ = false;
  unblocked_.notify_all();
}

void FakeGpuProbe::set_problems(std::vector<std::string> problems) {
  const std::lock_guard lock(mutex_);
  problems_ = std::move(problems);
}

void FakeGpuProbe::set_settings(std::vector<Setting> settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

void FakeGpuProbe::set_links(std::vector<GpuLink> links) {
  const std::lock_guard lock(mutex_);
  links_ = std::move(links);
}

std::vector<GpuLink> FakeGpuProbe::read_links(const std::vector<GpuInfo>&) {
  const std::lock_guard lock(mutex_);
  return links_;
}

int FakeGpuProbe::samples_read() const {
  const std::lock_guard lock(mutex_);
  return samples_read_;
}

Result<ports::DriverInfo> FakeGpuProbe::read_driver() {
  const auto lock = ask_driver();
  if (failure_) return tl::unexpected<Error>(*failure_);
  return ports::DriverInfo{"580.0", 13000, problems_};
}

Result<std::vector<GpuInfo>> FakeGpuProbe::read_gpus() {
  const auto lock = ask_driver();
  if (failure_) return tl::unexpected<Error>(*failure_);
  std::vector<GpuInfo> infos;
  for (const Gpu& gpu : gpus_) infos.push_back(gpu.info);
  return infos;
}

GpuSample FakeGpuProbe::read_sample(const GpuInfo& gpu) {
  std::unique_lock lock(mutex_);
  ++samples_read_;
  unblocked_.wait(lock, [&] {
    const Gpu* found = find(gpu.uuid);
    return found == nullptr || !found->blocked;
  });
  GpuSample sample;
  sample.uuid = gpu.uuid;
  const Gpu* found = find(gpu.uuid);
  if (failure_ || found == nullptr) {
    sample.error = failure_ ? failure_->message : "no such GPU";
    return sample;
  }
  sample.error = found->error;
  sample.total = found->info.memory;
  Bytes used = found->unattributed;
  sample.load_percent = found->load;
  for (const auto& [pid, process] : found->processes) {
    sample.processes.push_back(process);
    used += process.used.value_or(Bytes());
  }
  if (!found->info.unified) sample.used = used;
  sample.machine_available = found->machine_available;
  return sample;
}

Result<std::vector<pid_t>> FakeGpuProbe::read_compute_pids(const GpuInfo& gpu) {
  const GpuSample sample = read_sample(gpu);
  if (!sample.error.empty()) return fail(Code::kUnavailable, sample.error);
  std::vector<pid_t> pids;
  for (const GpuProcess& process : sample.processes) {
    if (!process.graphics) pids.push_back(process.pid);
  }
  return pids;
}

std::vector<ports::GpuProbe::Setting> FakeGpuProbe::read_settings(const GpuInfo& gpu) {
  std::unique_lock lock(mutex_);
  unblocked_.wait(lock, [&] {
    const Gpu* found = find(gpu.uuid);
    return found == nullptr || !found->blocked;
  });
  return settings_;
}

void FakeGpuProbe::set_has_limits(bool has_limits) {
  const std::lock_guard lock(mutex_);
  has_limits_ = has_limits;
}

void FakeGpuProbe::set_group_limit(const GpuUuid& gpu, const std::string& group,
                                   std::optional<Bytes> hard) {
  const std::lock_guard lock(mutex_);
  if (hard) {
    group_limits_[{gpu, group}] = *hard;
  } else {
    group_limits_.erase({gpu, group});
  }
}

std::optional<Bytes> FakeGpuProbe::group_limit(const GpuUuid& gpu, const std::string& group) const {
  const std::lock_guard lock(mutex_);
  const auto found = group_limits_.find({gpu, group});
  return found == group_limits_.end() ? std::nullopt : std::optional(found->second);
}

void FakeGpuProbe::set_limit_error(std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  limit_error_ = std::move(error);
}

int FakeGpuProbe::limits_set() const {
  const std::lock_guard lock(mutex_);
  return limits_set_;
}

Result<ports::MemoryLimits> FakeGpuProbe::read_memory_limits(const GpuInfo& gpu,
                                                             const std::string& group) {
  {
    std::unique_lock lock(mutex_);
    unblocked_.wait(lock, [&] {
      const Gpu* found = find(gpu.uuid);
      return found == nullptr || !found->blocked;
    });
    if (!has_limits_) return fail(Code::kUnavailable, "no memory limits");
  }
  return ports::MemoryLimits{{}, group_limit(gpu.uuid, group), {}};
}

Result<void> FakeGpuProbe::set_memory_limit(const GpuInfo& gpu, const std::string& group,
                                            std::optional<Bytes> hard) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_limits_) return fail(Code::kUnavailable, "no memory limits");
    ++limits_set_;
    if (limit_error_) return tl::unexpected<Error>(*limit_error_);
  }
  set_group_limit(gpu.uuid, group, hard);
  return {};
}

FakeGpuProbe::Gpu* FakeGpuProbe::find(const GpuUuid& uuid) {
  const auto at =
      std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& g) { return g.info.uuid == uuid; });
  return at == gpus_.end() ? nullptr : &*at;
}

}  // namespace gpurota::testing
