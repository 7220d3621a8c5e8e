#include "cli/top/model.h"

#include <algorithm>

namespace gpurota::cli::topview {
namespace {

int percent_of(Bytes part, Bytes whole) {
  if (whole.is_zero()) return -1;
  const double share = static_cast<double>(part.count()) / static_cast<double>(whole.count());
  return static_cast<int>(std::min(share, 1.0) * 100 + 0.5);
}

// -1 if unknown.
int percent_of(std::optional<Bytes> part, Bytes whole) {
  return part ? percent_of(*part, whole) : -1;
}

std::string key_of(LeaseId lease, const GpuUuid& gpu) { return to_string(lease) + "/" + gpu.value; }

}  // namespace

void Model::take(Answers answers) {
  ++round_;
  for (const proto::Gpu& gpu : answers.status.gpus) {
    sample(gpu.uuid.value,
           {gpu.utilisation_percent.value_or(-1), percent_of(gpu.used_bytes, gpu.memory_bytes)});
  }
  for (const proto::Lease& lease : answers.status.leases) {
    for (const proto::LeaseGpu& share : lease.gpus) {
      Bytes whole = share.limit_bytes.value_or(Bytes());
      for (const proto::Gpu& gpu : answers.status.gpus) {
        if (!share.limit_bytes && gpu.uuid == share.uuid) whole = gpu.memory_bytes;
      }
      sample(key_of(lease.lease_id, share.uuid), {-1, percent_of(share.used_bytes, whole)});
    }
  }
  std::erase_if(samples_, [this](const auto& each) { return each.second.last_round != round_; });
  answers_ = std::move(answers);
  trouble_.clear();
}

const proto::Gpu* Model::find_gpu(const GpuUuid& uuid) const {
  for (const proto::Gpu& gpu : answers_.status.gpus) {
    if (gpu.uuid == uuid) return &gpu;
  }
  return nullptr;
}

const proto::Lease* Model::find_lease(LeaseId id) const {
  for (const proto::Lease& lease : answers_.status.leases) {
    if (lease.lease_id == id) return &lease;
  }
  return nullptr;
}

const proto::TurnGpu* Model::find_turns(const GpuUuid& uuid) const {
  for (const proto::TurnGpu& gpu : answers_.turns.gpus) {
    if (gpu.uuid == uuid && gpu.takes_turns) return &gpu;
  }
  return nullptr;
}

History Model::history(const GpuUuid& uuid) const { return history_of(uuid.value); }

History Model::history(LeaseId lease, const GpuUuid& uuid) const {
  return history_of(key_of(lease, uuid));
}

void Model::sample(const std::string& key, Sample sample) {
  Samples& samples = samples_[key];
  samples.last_round = round_;
  samples.samples.push_back(sample);
  if (samples.samples.size() > kMostSamples) samples.samples.pop_front();
}

History Model::history_of(const std::string& key) const {
  History history;
  const auto found = samples_.find(key);
  if (found == samples_.end()) return history;
  for (const Sample& sample : found->second.samples) {
    history.load.push_back(sample.load);
    history.memory.push_back(sample.memory);
  }
  return history;
}

}  // namespace gpurota::cli::topview
