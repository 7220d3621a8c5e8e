// Simulated machines for the tests of `gpurota status`.
#pragma once

#include "cli/status/status_view.h"
#include "proto/methods.h"
#include "proto/text_forms.h"

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

namespace gpurota::cli::samples {

inline const WallTime kNow = *proto::parse_time("2026-11-21T01:00:00Z");

inline Bytes in_gib(double amount) {
  return Bytes(static_cast<std::uint64_t>(std::llround(amount * 1024)) << 20);
}

class Machine {
 public:
  explicit Machine(int gpus, const std::string& model = "NVIDIA H100 80GB HBM3",
                   double size = 79.6) {
    for (int i = 0; i < gpus; ++i) add_gpu(model, size);
  }

  proto::Gpu& add_gpu(const std::string& model, double size) {
    proto::Gpu& gpu = reply.gpus.emplace_back();
    gpu.index = static_cast<int>(reply.gpus.size()) - 1;
    gpu.label = std::to_string(gpu.index);
    gpu.uuid = {"GPU-" + std::to_string(gpu.index)};
    gpu.name = model;
    gpu.memory_bytes = in_gib(size);
    gpu.used_bytes = Bytes();
    gpu.state = proto::GpuState::kAvailable;
    gpu.utilisation_percent = 0;
    return gpu;
  }

  proto::Gpu& gpu(int index) { return reply.gpus.at(static_cast<std::size_t>(index)); }
  proto::Lease& lease(std::uint64_t id) {
    for (proto::Lease& each : reply.leases) {
      if (each.lease_id.value == id) return each;
    }
    return reply.leases.emplace_back();
  }

  // The whole of each GPU, or `limit` GiB of each.
  proto::Lease& lend(std::uint64_t id, const std::string& user, std::vector<int> gpus,
                     std::chrono::minutes age, double used, double limit = 0) {
    proto::Lease& lease = reply.leases.emplace_back();
    lease.lease_id = LeaseId{id};
    lease.user = user;
    lease.kind = proto::LeaseKind::kRun;
    lease.share = limit == 0 ? proto::Share::kExclusive : proto::Share::kSlice;
    lease.state = proto::LeaseState::kActive;
    lease.since = kNow - age;
    for (const int index : gpus) {
      proto::Gpu& on = gpu(index);
      on.state = proto::GpuState::kInUse;
      on.leases.push_back(lease.lease_id);
      on.used_bytes = on.used_bytes.value_or(Bytes()) + in_gib(used);
      on.reserved_bytes += limit == 0 ? on.memory_bytes : in_gib(limit);
      on.utilisation_percent = used > 0 ? 97 : 0;
      proto::LeaseGpu& share = lease.gpus.emplace_back();
      share.index = index;
      share.label = on.label;
      share.uuid = on.uuid;
      share.used_bytes = in_gib(used);
      share.processes = used > 0 ? 1 : 0;
      if (limit != 0) share.limit_bytes = in_gib(limit);
    }
    return lease;
  }

  proto::Lease& lend_in_turns(std::uint64_t id, const std::string& user, int gpu_index,
                              const std::string& phase, int position, double used, double out) {
    proto::Lease& lease = lend(id, user, {gpu_index}, std::chrono::minutes(90), used, 70);
    lease.share = proto::Share::kSwap;
    gpu(gpu_index).reserved_bytes -= in_gib(70);
    lease.gpus[0].turn = phase;
    lease.gpus[0].turn_position = position;
    lease.gpus[0].moved_out_bytes = in_gib(out);
    return lease;
  }

  proto::Finding& find(proto::FindingKind kind, int gpu_index, const std::string& user, double used,
                       std::vector<proto::FoundProcess> processes = {}) {
    proto::Finding& finding = reply.findings.emplace_back();
    finding.kind = kind;
    finding.gpu = gpu_index;
    finding.gpu_uuid = gpu(gpu_index).uuid;
    finding.user = user;
    finding.since = kNow - std::chrono::minutes(10);
    finding.used_bytes = in_gib(used);
    finding.process_count = static_cast<int>(processes.size());
    finding.processes = std::move(processes);
    return finding;
  }

  proto::Status::Reply reply;
};

struct Sample {
  std::string name;
  proto::Status::Reply reply;
};

std::vector<Sample> all();

// The output of `gpurota status` for one machine.
inline std::string status_text(const proto::Status::Reply& reply, const Layout& layout,
                               WallTime now) {
  return hosts_status_text(Hosts{{"", &reply}}, layout, now);
}
inline std::string summary_text(const proto::Status::Reply& reply, const std::string& host,
                                const Layout& layout) {
  return hosts_summary_text(Hosts{{host, &reply}}, layout);
}

}  // namespace gpurota::cli::samples
