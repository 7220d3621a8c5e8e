#include "cli/status/status_rows.h"

#include "base/text.h"
#include "cli/text/last_minute_text.h"
#include "cli/text/ps_doctor_text.h"
#include "cli/text/time_text.h"
#include "client/reason_text.h"
#include "core/local_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::cli {
namespace {

using Row = std::vector<Cell>;
using Found = std::vector<proto::FoundProcess>;

// Less available memory than this gets no row.
constexpr Bytes kLeastRoom = mib(256);
constexpr std::size_t kLongestCommand = 120;
constexpr std::size_t kFirmName = 32;  // longest account name of useradd(8)

// Remarks about a row, the most important first.
class Parts {
 public:
  void add(const std::string& part) {
    if (!part.empty()) text_ += (text_.empty() ? "" : ", ") + part;
  }
  // Adds a part that is never cut. The parts before it are not cut either.
  void add_firm(const std::string& part) {
    add(part);
    firm_ = display_width(text_);
  }
  Cell cell(Colour colour = Colour::kNone) const { return {text_, colour, firm_}; }

 private:
  std::string text_;
  std::size_t firm_ = 0;
};

const proto::Finding* find(const proto::Status::Reply& reply, proto::FindingKind kind,
                           LeaseId lease, const GpuUuid& gpu) {
  for (const proto::Finding& finding : reply.findings) {
    if (finding.kind == kind && finding.lease_id == lease && finding.gpu_uuid == gpu) {
      return &finding;
    }
  }
  return nullptr;
}

bool is_expired(const proto::Lease& lease) { return lease.state == proto::LeaseState::kExpired; }

bool is_filler(const proto::Lease& lease) {
  return lease.kind == proto::LeaseKind::kFiller && !is_expired(lease);
}

// The name, the note, the model, the command: so that the owner recognizes the lease.
std::string purpose(const proto::Lease& lease) {
  std::string text = lease.name ? display_text(*lease.name, 64) : "";
  if (lease.note && !lease.note->empty()) {
    text += (text.empty() ? "" : ", ") + display_text(*lease.note, 80);
  }
  if (lease.model && !lease.model->empty()) {
    text += (text.empty() ? "" : ", ") + display_text(*lease.model, 60);
  }
  if (!lease.command || lease.command->empty()) return text;
  const std::string command = display_command(*lease.command, kLongestCommand);
  return text.empty() ? command : fmt::format("{} ({})", text, command);
}

// The program without its folder, which says little.
std::string short_command(std::vector<std::string> command) {
  if (command.empty()) return "";
  const std::size_t slash = command.front().rfind('/');
  if (slash != std::string::npos) command.front().erase(0, slash + 1);
  return display_command(command, kLongestCommand);
}

std::string processes_text(int count) {
  return fmt::format("{} process{}", count, count == 1 ? "" : "es");
}

// "podman web", "podman web and others"; "a container" if this user may not know more.
std::string containers_text(const proto::Finding& finding) {
  std::set<std::string> names;
  for (const proto::FoundProcess& process : finding.processes.value_or(Found())) {
    if (process.container) names.insert(container_text(*process.container));
  }
  if (names.empty()) return "a container";
  return *names.begin() + (names.size() > 1 ? " and others" : "");
}

// "pid 28919 (python3 train.py) and 2 more", or only the number for other users' processes.
std::string found_text(const proto::Finding& finding) {
  if (!finding.processes || finding.processes->empty()) {
    return finding.process_count > 0 ? processes_text(finding.process_count) : "no listed process";
  }
  const proto::FoundProcess& first = finding.processes->front();
  std::string text = fmt::format("pid {}", first.pid);
  if (first.command) text += fmt::format(" ({})", short_command(*first.command));
  const std::size_t others = finding.processes->size() - 1;
  return others == 0 ? text : text + fmt::format(" and {} more", others);
}

// "compute 30% (got 31%)", "compute at most 50%".
std::string compute_text(const proto::Lease& lease) {
  if (!lease.compute_percent && !lease.compute_max_percent) return {};
  std::string text = "compute";
  if (lease.compute_percent) text += fmt::format(" {}%", *lease.compute_percent);
  if (lease.compute_max_percent) {
    text +=
        fmt::format("{} at most {}%", lease.compute_percent ? "," : "", *lease.compute_max_percent);
  }
  const auto got = lease.last_minute ? lease.last_minute->got_percent : std::nullopt;
  return got ? text + fmt::format(" (got {}%)", *got) : text;
}

// "reservation", "swap", "oversize job", "interactive", "compute 30%"; nothing for a run with
// memory of its own. Mentions turns.
std::string share_kind_text(const proto::Lease& lease, const proto::LeaseGpu& share) {
  std::string text;
  if (lease.share == proto::Share::kSwap && !share.turn) text = "swap";
  if (share.oversize_bytes) text = "oversize";
  if (lease.latency == proto::LatencyClass::kInteractive) text = "interactive";
  if (const std::string compute = compute_text(lease); !compute.empty()) text = compute;
  const bool plain = lease.kind == proto::LeaseKind::kRun || is_filler(lease);
  if (!plain) text += (text.empty() ? "" : " ") + std::string(to_string(lease.kind));
  return text;
}

// For a lease whose GPU takes turns: "now", "next", "3rd", or "-" while it wants no turn.
Cell turn_cell(const proto::LeaseGpu& share) {
  if (!share.turn) return {};
  if (*share.turn == "holding" || *share.turn == "entering") return {"now", Colour::kGreen};
  if (*share.turn == "leaving") return {"ends", Colour::kNone};
  const int position = share.turn_position.value_or(0);
  if (position <= 0) return {"-", Colour::kNone};
  if (position == 1) return {"next", Colour::kNone};
  const bool teen = position % 100 / 10 == 1;
  const int last = teen ? 0 : position % 10;
  return {fmt::format("{}{}", position,
                      last == 1   ? "st"
                      : last == 2 ? "nd"
                      : last == 3 ? "rd"
                                  : "th"),
          Colour::kNone};
}

// `beside`: another amount in the row (by default `size`). `used` is written with enough decimals
// to tell the two apart, unless they are equal.
void set_memory(Row& row, std::optional<Bytes> used, Bytes size,
                std::optional<Bytes> beside = std::nullopt) {
  row[kUsed].text = used ? gib_text(*used, beside.value_or(size)) : "?";
  row[kSize].text = "/ " + gib_text(size, used.value_or(size));
}

bool is_above_soft_limit(const proto::LeaseGpu& share) {
  return share.soft_limit_bytes && share.used_bytes && *share.used_bytes > *share.soft_limit_bytes;
}

// An account's name is cut only if it is longer than usual names; the person of a shared account
// may be cut.
Cell user_cell(const std::string& user, const std::optional<std::string>& as_name, Colour colour) {
  return {as_name ? fmt::format("{} ({})", user, *as_name) : user, colour,
          std::min(display_width(display_text(user)), kFirmName)};
}

// For a MIG instance only what the row of its GPU does not say.
std::string model_text(const proto::Gpu& gpu) {
  const std::size_t mig = gpu.parent ? gpu.name.find("MIG ") : std::string::npos;
  return mig == std::string::npos ? short_name(gpu.name) : gpu.name.substr(mig);
}

Bytes hidden_of(const proto::Gpu& gpu) { return gpu.hidden_bytes.value_or(Bytes()); }

// Whether an administrator has lowered the GPU's capacity. A difference of up to `margin` may be
// memory that the driver itself keeps.
bool has_less(const proto::Gpu& gpu) {
  const Bytes margin(gpu.memory_bytes.count() / 16);
  return gpu.available_bytes && *gpu.available_bytes + margin < gpu.memory_bytes;
}

class Rows {
 public:
  Rows(const proto::Status::Reply& reply, WallTime now) : reply_(reply), now_(now) {}

  std::vector<Row> of(const proto::Gpu& gpu) const {
    std::vector<Row> rows;
    bool sliced = false;
    for (const proto::Lease& lease : reply_.leases) {
      for (const proto::LeaseGpu& share : lease.gpus) {
        if (share.uuid != gpu.uuid) continue;
        rows.push_back(lease_row(lease, share, gpu.memory_bytes));
        sliced |= share.limit_bytes && !is_filler(lease);
      }
    }
    const std::size_t leases = rows.size();
    for (const proto::Finding& finding : reply_.findings) {
      const bool stranger = finding.kind == proto::FindingKind::kUnreservedUse ||
                            finding.kind == proto::FindingKind::kForeignUse;
      if (stranger && finding.gpu_uuid == gpu.uuid) rows.push_back(stranger_row(finding));
    }
    const bool unreserved = gpu.state == proto::GpuState::kUnreservedUse;
    if (unreserved && rows.size() == leases) rows.push_back(unexplained_row(gpu));
    const bool said = !rows.empty() && (unreserved || gpu.state == proto::GpuState::kInUse ||
                                        gpu.state == proto::GpuState::kAvailable);
    if (!said) rows.insert(rows.begin(), gpu_row(gpu));
    if (said && sliced) add_room(gpu, rows);
    rows.front()[kGpu].text = label_of(gpu);
    rows.front()[kUuid].text = gpu.uuid.value;
    if (gpu.available_bytes) {
      rows.front()[kFree].text = gib_text(*gpu.available_bytes, gpu.memory_bytes);
    }
    rows.front()[kModel].text = model_text(gpu);
    if (gpu.utilisation_percent) {
      rows.front()[kLoad].text = fmt::format("{}%", *gpu.utilisation_percent);
    }
    return rows;
  }

  // Rows for GPUs that the driver no longer shows but that still have leases.
  std::vector<Row> of_lost() const {
    std::vector<Row> rows;
    for (const proto::Lease& lease : reply_.leases) {
      for (const proto::LeaseGpu& share : lease.gpus) {
        const bool there =
            std::any_of(reply_.gpus.begin(), reply_.gpus.end(),
                        [&](const proto::Gpu& gpu) { return gpu.uuid == share.uuid; });
        if (there) continue;
        Row& row = rows.emplace_back(lease_row(lease, share, Bytes()));
        row[kGpu].text = "?";
        row[kUuid].text = share.uuid.value;
        row[kState] = {"LOST", Colour::kRed};
        row[kUsed].text = "?";
        row[kSize].text.clear();
        Parts parts = end_parts(lease);
        parts.add("the driver no longer shows " + share.uuid.value);
        row[kWhat] = parts.cell();
      }
    }
    return rows;
  }

 private:
  Row lease_row(const proto::Lease& lease, const proto::LeaseGpu& share, Bytes whole) const {
    Row row(kStatusColumns);
    row[kState] = lease_state(lease, share);
    row[kUser] = user_cell(lease.user, lease.as_name, Colour::kNone);
    row[kLease].text = to_string(lease.lease_id);
    set_memory(row, share.used_bytes, share.limit_bytes.value_or(whole),
               is_above_soft_limit(share) ? share.soft_limit_bytes : std::nullopt);
    row[kTurn] = turn_cell(share);
    row[kFor].text = span_text(now_ - lease.since);
    row[kWhat] = lease_cell(lease, share);
    row[kKind].text = to_string(lease.kind);
    if (lease.ends) row[kEnds].text = span_text(std::max(*lease.ends - now_, WallTime::duration()));
    row[kProcesses].text = std::to_string(share.processes);
    row[kName].text = lease.name.value_or("");
    row[kNote].text = lease.note.value_or("");
    return row;
  }

  // The worst state that applies.
  Cell lease_state(const proto::Lease& lease, const proto::LeaseGpu& share) const {
    const auto is_found = [&](proto::FindingKind kind) {
      return find(reply_, kind, lease.lease_id, share.uuid) != nullptr;
    };
    if (is_found(proto::FindingKind::kNotLimited)) return {"NO LIMIT", Colour::kRed};
    if (is_found(proto::FindingKind::kOverLimit)) return {"OVER LIMIT", Colour::kRed};
    if (is_expired(lease)) return {"EXPIRED", Colour::kRed};
    if (lease.state == proto::LeaseState::kEnding) return {"ending", Colour::kYellow};
    if (lease.parked) return {to_string(*lease.parked), Colour::kYellow};
    if (is_filler(lease)) return {"filler", Colour::kGreen};
    return {"in use", Colour::kNone};
  }

  // When the lease ends, or should have ended.
  Parts end_parts(const proto::Lease& lease) const {
    Parts parts;
    if (is_expired(lease)) {
      parts.add_firm(lease.ends ? fmt::format("ended {} ago", span_text(now_ - *lease.ends))
                                : "its time is over");
      parts.add("still holds memory");
    } else if (lease.ends && lease.state != proto::LeaseState::kEnding) {
      parts.add_firm("ends in " + span_text(*lease.ends - now_));
    }
    return parts;
  }

  Cell lease_cell(const proto::Lease& lease, const proto::LeaseGpu& share) const {
    Parts parts = end_parts(lease);
    for (const auto kind : {proto::FindingKind::kNotLimited, proto::FindingKind::kOverLimit}) {
      const auto* found = find(reply_, kind, lease.lease_id, share.uuid);
      if (!found) continue;
      const char* const what = kind == proto::FindingKind::kOverLimit ? "over" : "not enforced";
      parts.add(fmt::format("{} for {}", what, span_text(now_ - found->since)));
    }
    const Bytes out = share.moved_out_bytes.value_or(Bytes());
    if (!out.is_zero()) parts.add(to_string(out) + " in host memory");
    if (is_above_soft_limit(share)) {
      parts.add("above its soft limit of " + to_string(*share.soft_limit_bytes, *share.used_bytes));
    }
    if (lease.park_wait) parts.add(client::reason_text(*lease.park_wait, now_));
    const bool unused =
        !lease.parked && share.processes == 0 && share.used_bytes == Bytes() && out.is_zero();
    if (share.unused_since) {
      parts.add("unused for " + span_text(now_ - *share.unused_since));
    } else if (unused && lease.state == proto::LeaseState::kActive) {
      parts.add("unused");
    }
    parts.add(share_kind_text(lease, share));
    parts.add(short_held_text(lease));
    parts.add(purpose(lease));
    return parts.cell(share.unused_since ? Colour::kYellow : Colour::kNone);
  }

  Row stranger_row(const proto::Finding& finding) const {
    Row row(kStatusColumns);
    row[kState] = state_cell(proto::GpuState::kUnreservedUse);
    row[kUser] = user_cell(finding.user.value_or("unknown"), std::nullopt, Colour::kYellow);
    row[kLease].text = "-";
    row[kUsed].text = finding.used_bytes ? gib_text(*finding.used_bytes, *finding.used_bytes) : "?";
    row[kFor].text = span_text(now_ - finding.since);
    Parts parts;
    const bool foreign = finding.kind == proto::FindingKind::kForeignUse;
    if (foreign && finding.lease_id) {
      parts.add_firm(fmt::format("on {}'s GPU", to_string(*finding.lease_id)));
    }
    parts.add(found_text(finding));
    if (finding.perhaps_of || finding.container) parts.add("in " + containers_text(finding));
    if (finding.perhaps_of) parts.add("perhaps of " + to_string(*finding.perhaps_of));
    row[kWhat] = parts.cell();
    return row;
  }

  // Use above the requested threshold and below the site's: the site does not report such use, so
  // its user is unknown.
  static Row unexplained_row(const proto::Gpu& gpu) {
    Row row(kStatusColumns);
    row[kState] = state_cell(proto::GpuState::kUnreservedUse);
    row[kUser] = {"?", Colour::kYellow};
    row[kLease].text = "-";
    row[kUsed].text = gib_text(gpu.unreserved_bytes, gpu.unreserved_bytes);
    row[kWhat].text = "whose it is: gpurota ps";
    return row;
  }

  Row gpu_row(const proto::Gpu& gpu) const {
    Row row(kStatusColumns);
    row[kState] = state_cell(gpu.state);
    set_memory(row, gpu.used_bytes, gpu.memory_bytes);
    row[kFor].text = gpu.idle_since ? span_text(now_ - *gpu.idle_since) : "";
    if (gpu.state == proto::GpuState::kSplit) {
      const auto instances =
          std::count_if(reply_.gpus.begin(), reply_.gpus.end(),
                        [&](const proto::Gpu& other) { return other.parent == gpu.uuid; });
      row[kWhat].text = fmt::format("into {} MIG instance{}", instances, instances == 1 ? "" : "s");
    } else if (gpu.state == proto::GpuState::kHeld && gpu.held_for) {
      row[kWhat].text = "kept for " + to_string(*gpu.held_for);
    } else if (gpu.detail && !gpu.detail->empty()) {
      row[kWhat].text = *gpu.detail;
    } else if (const std::string booked = booked_part(gpu); !booked.empty()) {
      row[kWhat].text = booked;
    } else if (gpu.state == proto::GpuState::kDraining) {
      row[kWhat].text = "no new leases";
    } else if (gpu.state == proto::GpuState::kAvailable && !gpu.unreserved_bytes.is_zero()) {
      row[kWhat].text = to_string(gpu.unreserved_bytes) + " used without a lease: gpurota ps";
    } else if (gpu.state == proto::GpuState::kAvailable && hidden_of(gpu) > Bytes()) {
      row[kWhat].text = to_string(hidden_of(gpu)) + " used by no listed process";
    } else if (gpu.state == proto::GpuState::kAvailable && has_less(gpu)) {
      row[kWhat].text = to_string(*gpu.available_bytes) + " can be leased";
    }
    return row;
  }

  // "booked from Mon 09:00 by bob": the first booking.
  std::string booked_part(const proto::Gpu& gpu) const {
    if (!reply_.bookings) return {};
    for (const proto::Booking& each : *reply_.bookings) {
      if (std::find(each.gpu_ids.begin(), each.gpu_ids.end(), gpu.uuid) == each.gpu_ids.end())
        continue;
      const std::string user = display_text(each.user, 32);
      if (each.begins <= now_) return fmt::format("booked by {}, who gets it next", user);
      return fmt::format("booked from {} by {}", local_time_text(each.begins, now_), user);
    }
    return {};
  }

  // Adds a row with the memory that a new slice would get beside the leases there.
  static void add_room(const proto::Gpu& gpu, std::vector<Row>& rows) {
    const Bytes available = gpu.available_bytes.value_or(Bytes());
    if (available < kLeastRoom) return;
    Row& row = rows.emplace_back(kStatusColumns);
    row[kState] = state_cell(proto::GpuState::kAvailable);
    set_memory(row, Bytes(), available);
    row[kWhat] = {"for run --memory", Colour::kDim};
  }

  const proto::Status::Reply& reply_;
  WallTime now_;
};

}  // namespace

std::vector<std::vector<Cell>> status_rows(const proto::Status::Reply& reply, WallTime now) {
  const Rows rows(reply, now);
  std::vector<Row> all;
  for (const proto::Gpu& gpu : reply.gpus) {
    for (Row& row : rows.of(gpu)) all.push_back(std::move(row));
  }
  for (Row& row : rows.of_lost()) all.push_back(std::move(row));
  return all;
}

Cell state_cell(proto::GpuState state) {
  switch (state) {
    case proto::GpuState::kAvailable:
      return {"free", Colour::kGreen};
    case proto::GpuState::kHeld:
      return {"held", Colour::kYellow};
    case proto::GpuState::kInUse:
      return {"in use", Colour::kNone};
    case proto::GpuState::kUnreservedUse:
      return {"NO LEASE", Colour::kRed};
    case proto::GpuState::kDraining:
      return {"DRAINING", Colour::kYellow};
    case proto::GpuState::kError:
      return {"ERROR", Colour::kRed};
    case proto::GpuState::kSplit:
      return {"split", Colour::kDim};
    case proto::GpuState::kUnknown:
      break;
  }
  return {"UNKNOWN", Colour::kYellow};
}

std::string short_name(const std::string& name) {
  constexpr std::string_view kVendor = "NVIDIA ";
  return name.starts_with(kVendor) ? name.substr(kVendor.size()) : name;
}

bool has_whole_room(const proto::Gpu& gpu, const proto::Status::Reply& reply) {
  return std::all_of(gpu.leases.begin(), gpu.leases.end(), [&](LeaseId id) {
    return std::any_of(reply.leases.begin(), reply.leases.end(), [&](const proto::Lease& lease) {
      return lease.lease_id == id &&
             (is_filler(lease) || lease.parked == proto::ParkState::kParked);
    });
  });
}

}  // namespace gpurota::cli
