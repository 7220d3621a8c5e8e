#include "cli/status_view.h"

#include "base/text.h"
#include "cli/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace gpurota::cli {
namespace {

enum ColumnIndex : std::size_t {
  kGpu,
  kName,
  kState,
  kUser,
  kFor,
  kShare,
  kType,
  kLease,
  kMemory,
  kDetails,
  kValidation,
  kModel,
  kNote,
  kColumns
};

std::vector<Column> columns() {
  return {{"GPU", true},
          {"NAME", false, 8},
          {"STATE"},
          {"USER", false, 6},
          {"FOR", true},
          {"SHARE"},
          {"TYPE"},
          {"LEASE"},
          {"MEMORY", true},
          {"DETAILS", false, 12},
          {"VALIDATION", false, 10},
          {"MODEL", false, 10},
          {"NOTE", false, 8}};
}

// What goes first where the terminal is too narrow for all of it.
constexpr std::array kDropOrder = {kName,    kType,  kModel, kShare, kValidation,
                                   kDetails, kLease, kFor,   kNote};

// Drivers say it of every card of theirs.
std::string short_name(const std::string& name) {
  constexpr std::string_view kVendor = "NVIDIA ";
  return name.starts_with(kVendor) ? name.substr(kVendor.size()) : name;
}

// Whether only fillers are on it: they go the moment somebody needs it.
bool only_fillers(const proto::Gpu& gpu, const proto::Status::Reply& reply) {
  return std::all_of(gpu.leases.begin(), gpu.leases.end(), [&](LeaseId id) {
    return std::any_of(reply.leases.begin(), reply.leases.end(), [&](const proto::Lease& lease) {
      return lease.lease_id == id && lease.kind == proto::LeaseKind::kFiller;
    });
  });
}

// A GPU that is divided by MIG: its instances are what can be had.
bool is_split(const proto::Gpu& gpu, const proto::Status::Reply& reply) {
  return std::any_of(reply.gpus.begin(), reply.gpus.end(),
                     [&](const proto::Gpu& other) { return other.parent == gpu.uuid; });
}

Cell state_cell(const proto::Gpu& gpu, const proto::Status::Reply& reply) {
  if (gpu.state == proto::GpuState::kAvailable && is_split(gpu, reply)) {
    return {"split", Colour::kNone};
  }
  switch (gpu.state) {
    case proto::GpuState::kAvailable:
      if (gpu.held_for) return {"held", Colour::kYellow};
      return {gpu.leases.empty() ? "available" : "available (filler)", Colour::kGreen};
    case proto::GpuState::kDraining:
      return {"draining", Colour::kYellow};
    case proto::GpuState::kInUse:
      if (only_fillers(gpu, reply)) return {"available (filler)", Colour::kGreen};
      return {"in use", Colour::kNone};
    case proto::GpuState::kUnreservedUse:
      return {"unreserved use", Colour::kYellow};
    case proto::GpuState::kError:
      return {"error", Colour::kRed};
    case proto::GpuState::kUnknown:
      break;
  }
  return {"unknown", Colour::kYellow};
}

// Why it is out of service: said also where there is more to say.
std::string why_out(const proto::Gpu& gpu) {
  const bool out = gpu.state == proto::GpuState::kDraining || gpu.state == proto::GpuState::kError;
  return out ? gpu.detail.value_or("") : "";
}

// The note, then the command: what the owner recognises it by.
std::string purpose(const proto::Lease& lease) {
  std::string text = lease.command && !lease.command->empty() ? display_command(*lease.command, 120)
                                                              : std::string();
  if (lease.note && !lease.note->empty()) {
    const std::string note = display_text(*lease.note, 80);
    text = text.empty() ? note : fmt::format("{} ({})", note, text);
  }
  return text;
}

const proto::Finding* find(const proto::Status::Reply& reply, proto::FindingKind kind,
                           LeaseId lease, const GpuUuid& gpu) {
  for (const proto::Finding& finding : reply.findings) {
    if (finding.kind == kind && finding.lease_id == lease && finding.gpu_uuid == gpu) {
      return &finding;
    }
  }
  return nullptr;
}

// "0.5/8 GiB": one glance is to do.
std::string share_of(Bytes used, Bytes size) {
  if (size < gib(1)) return fmt::format("{} of {}", to_string(used), to_string(size));
  const auto text = [](Bytes amount) {
    const double in_gib = static_cast<double>(amount.count()) / static_cast<double>(gib(1).count());
    const std::string exact = fmt::format("{:.1f}", in_gib);
    return exact.ends_with(".0") ? exact.substr(0, exact.size() - 2) : exact;
  };
  return fmt::format("{}/{} GiB", text(used), text(size));
}

std::string processes_text(int count) {
  return fmt::format("{} process{}", count, count == 1 ? "" : "es");
}

// Whether what NVML sees agrees with the lease.
Cell validation_cell(const proto::Status::Reply& reply, const proto::Lease& lease,
                     const proto::LeaseGpu& share, WallTime now) {
  const auto* loose = find(reply, proto::FindingKind::kNotLimited, lease.lease_id, share.uuid);
  if (loose) return {"not limited for " + span_text(now - loose->since), Colour::kRed};
  const auto* over = find(reply, proto::FindingKind::kOverLimit, lease.lease_id, share.uuid);
  if (over) return {"over its limit for " + span_text(now - over->since), Colour::kRed};
  if (share.unused_since) {
    return {"unused for " + span_text(now - *share.unused_since), Colour::kYellow};
  }
  if (share.processes > 0) return {processes_text(share.processes), Colour::kNone};
  if (!share.used_bytes.is_zero()) return {"in use", Colour::kNone};
  return {"no use seen", Colour::kDim};
}

class Rows {
 public:
  Rows(const proto::Status::Reply& reply, WallTime now) : reply_(reply), now_(now) {}

  // Of GPUs that the driver no longer shows: what is leased of them all the same.
  std::vector<std::vector<Cell>> of_lost() const {
    std::vector<std::vector<Cell>> rows;
    for (const proto::Lease& lease : reply_.leases) {
      for (const proto::LeaseGpu& share : lease.gpus) {
        const bool there =
            std::any_of(reply_.gpus.begin(), reply_.gpus.end(),
                        [&](const proto::Gpu& gpu) { return gpu.uuid == share.uuid; });
        if (there) continue;
        std::vector<Cell>& row = rows.emplace_back(lease_row({}, lease, share));
        row[kGpu].text = label_of(share);
        row[kName].text = share.uuid.value;
        row[kState] = {"lost", Colour::kRed};
        row[kMemory].text = "?";
        row[kValidation] = {"not known", Colour::kYellow};
      }
    }
    return rows;
  }

  std::vector<std::vector<Cell>> of(const proto::Gpu& gpu) const {
    std::vector<std::vector<Cell>> rows;
    for (const proto::Lease& lease : reply_.leases) {
      for (const proto::LeaseGpu& share : lease.gpus) {
        if (share.uuid == gpu.uuid) rows.push_back(lease_row(gpu, lease, share));
      }
    }
    for (const proto::Finding& finding : reply_.findings) {
      const bool stranger = finding.kind == proto::FindingKind::kUnreservedUse ||
                            finding.kind == proto::FindingKind::kForeignUse;
      if (stranger && finding.gpu_uuid == gpu.uuid) rows.push_back(stranger_row(finding));
    }
    if (rows.empty()) rows.push_back(idle_row(gpu));
    std::vector<Cell>& first = rows.front();
    first[kGpu].text = label_of(gpu);
    first[kName].text = (gpu.parent ? "  " : "") + short_name(gpu.name);
    first[kState] = state_cell(gpu, reply_);
    if (first[kDetails].text.empty()) {
      first[kDetails] = detail_cell(gpu);
    } else if (const std::string why = why_out(gpu); !why.empty()) {
      first[kDetails].text += "; " + why;
    }
    return rows;
  }

 private:
  std::vector<Cell> lease_row(const proto::Gpu& gpu, const proto::Lease& lease,
                              const proto::LeaseGpu& share) const {
    std::vector<Cell> row(kColumns);
    row[kUser].text =
        lease.as_name ? fmt::format("{} ({})", lease.user, *lease.as_name) : lease.user;
    row[kFor].text = span_text(now_ - lease.since);
    row[kShare].text = share.oversize_bytes ? "oversize" : to_string(lease.share);
    row[kType].text = to_string(lease.kind);
    row[kLease].text = to_string(lease.lease_id);
    row[kMemory].text = share_of(share.used_bytes, share.limit_bytes.value_or(gpu.memory_bytes));
    row[kDetails] = end_cell(lease);
    row[kValidation] = validation_cell(reply_, lease, share, now_);
    row[kModel].text = lease.model.value_or("");
    row[kNote].text = purpose(lease);
    return row;
  }

  // When it ends, or that it should have.
  Cell end_cell(const proto::Lease& lease) const {
    if (lease.state == proto::LeaseState::kEnding) return {"ending", Colour::kYellow};
    if (lease.state == proto::LeaseState::kExpired) {
      return {"expired, holds memory", Colour::kRed};
    }
    if (lease.ends) return {"ends in " + span_text(*lease.ends - now_), Colour::kNone};
    return {};
  }

  std::vector<Cell> stranger_row(const proto::Finding& finding) const {
    std::vector<Cell> row(kColumns);
    row[kUser] = {finding.user.value_or("unknown"), Colour::kYellow};
    row[kFor].text = span_text(now_ - finding.since);
    row[kMemory].text = to_string(finding.used_bytes);
    const bool foreign = finding.kind == proto::FindingKind::kForeignUse;
    row[kDetails] = {foreign && finding.lease_id
                         ? fmt::format("on the GPU of {}", to_string(*finding.lease_id))
                         : std::string("without a lease"),
                     Colour::kYellow};
    row[kValidation].text = processes_text(finding.process_count);
    if (finding.processes && !finding.processes->empty() && finding.processes->front().command) {
      row[kNote].text = display_command(*finding.processes->front().command, 120);
    }
    return row;
  }

  std::vector<Cell> idle_row(const proto::Gpu& gpu) const {
    std::vector<Cell> row(kColumns);
    row[kMemory].text = share_of(gpu.used_bytes, gpu.memory_bytes);
    if (gpu.detail) return row;
    if (gpu.held_for) row[kDetails] = {"for " + to_string(*gpu.held_for), Colour::kYellow};
    if (gpu.held_for) return row;
    row[kFor].text = gpu.idle_since ? span_text(now_ - *gpu.idle_since) : std::string();
    row[kDetails] = {gpu.idle_since ? "free" : "never used", Colour::kDim};
    return row;
  }

  Cell detail_cell(const proto::Gpu& gpu) const {
    if (gpu.detail) return {*gpu.detail, Colour::kDim};
    const bool sliced =
        std::any_of(reply_.leases.begin(), reply_.leases.end(), [&](const proto::Lease& lease) {
          return lease.share == proto::Share::kSlice &&
                 std::any_of(lease.gpus.begin(), lease.gpus.end(),
                             [&](const auto& share) { return share.uuid == gpu.uuid; });
        });
    if (!sliced) return {};
    const Bytes left = gpu.memory_bytes - gpu.reserved_bytes;
    return {left.is_zero() ? "full" : to_string(left) + " left", Colour::kDim};
  }

  const proto::Status::Reply& reply_;
  WallTime now_;
};

}  // namespace

std::string status_text(const proto::Status::Reply& reply, const Look& look, WallTime now) {
  Table table(columns());
  const Rows rows(reply, now);
  for (const proto::Gpu& gpu : reply.gpus) {
    for (std::vector<Cell>& row : rows.of(gpu)) table.add(std::move(row));
  }
  for (std::vector<Cell>& row : rows.of_lost()) table.add(std::move(row));
  if (table.empty()) return "no GPU ('gpurota doctor' says why)\n";
  for (const std::size_t column : {kModel, kNote, kLease, kShare, kType, kUser}) {
    if (!table.has_text(column)) table.drop(column);
  }
  for (const std::size_t column : kDropOrder) {
    if (look.width > 0 && table.narrowest() > look.width) table.drop(column);
  }
  return table.render(look);
}

std::string summary_text(const proto::Status::Reply& reply, const std::string& host,
                         const Look& look) {
  std::map<std::string, int> models;
  std::map<proto::GpuState, int> states;
  int count_all = 0;
  for (const proto::Gpu& gpu : reply.gpus) {
    if (is_split(gpu, reply)) continue;
    ++count_all;
    ++models[short_name(gpu.name)];
    ++states[gpu.state];
  }
  std::string kinds;
  for (const auto& [name, count] : models) {
    kinds += fmt::format("{}{} x {}", kinds.empty() ? "" : ", ", count, display_text(name, 40));
  }
  const int other =
      count_all - states[proto::GpuState::kAvailable] - states[proto::GpuState::kInUse];
  Table table({{"HOST"},
               {"GPUS", true},
               {"AVAILABLE", true},
               {"IN USE", true},
               {"OTHER", true},
               {"MODELS", false, 10}});
  table.add({{host, Colour::kNone},
             {std::to_string(count_all), Colour::kNone},
             {std::to_string(states[proto::GpuState::kAvailable]), Colour::kGreen},
             {std::to_string(states[proto::GpuState::kInUse]), Colour::kNone},
             {std::to_string(other), other > 0 ? Colour::kYellow : Colour::kNone},
             {kinds, Colour::kNone}});
  return table.render(look);
}

void apply_threshold(proto::Status::Reply& reply, Bytes threshold) {
  for (proto::Gpu& gpu : reply.gpus) {
    const bool judged = gpu.state == proto::GpuState::kAvailable ||
                        gpu.state == proto::GpuState::kInUse ||
                        gpu.state == proto::GpuState::kUnreservedUse;
    if (!judged) continue;
    gpu.state = gpu.unreserved_bytes > threshold ? proto::GpuState::kUnreservedUse
                : only_fillers(gpu, reply)       ? proto::GpuState::kAvailable
                                                 : proto::GpuState::kInUse;
    // What the site does not call so has no finding that says whose it is.
    if (gpu.state == proto::GpuState::kUnreservedUse && !gpu.detail) {
      gpu.detail = to_string(gpu.unreserved_bytes) + " without a lease: see gpurota ps";
    }
  }
}

std::string span_text(WallTime::duration span) {
  const auto seconds =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(span).count());
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

}  // namespace gpurota::cli
