#include "daemon/control/views.h"

#include "base/text.h"
#include "core/model_name.h"
#include "daemon/control/pods.h"
#include "daemon/control/series_answer.h"
#include "daemon/control/wire_reason.h"
#include "daemon/gpus/gpu_classes.h"
#include "daemon/gpus/parked_room.h"
#include "daemon/leases/bookings.h"
#include "daemon/tenants/park_keeper.h"
#include "daemon/tenants/turn_keeper.h"
#include "proto/codec.h"
#include "proto/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpurota::daemon {
namespace {

// The most processes of a lease whose command lines are searched for the model. The process that
// launched the model is among the first.
constexpr std::ptrdiff_t kMostAsked = 2;

std::optional<proto::LibraryState> library_state(watch::Library library) {
  switch (library) {
    case watch::Library::kNotAsked:
      break;
    case watch::Library::kUnknown:
      return proto::LibraryState::kUnknown;
    case watch::Library::kAbsent:
      return proto::LibraryState::kAbsent;
    case watch::Library::kSilent:
      return proto::LibraryState::kSilent;
    case watch::Library::kAway:
      return proto::LibraryState::kAway;
  }
  return std::nullopt;
}

void show_hidden(const watch::Hidden& hidden, proto::Gpu& gpu) {
  if (hidden.is_known) gpu.hidden_bytes = hidden.bytes;
  if (!hidden.is_leaving) return;
  gpu.freeing = true;
  gpu.detail =
      fmt::format("memory of an ended program is being freed ({})", to_string(hidden.bytes));
}

void show_board(const GpuFigures& figures, proto::Gpu& gpu) {
  gpu.power_mw = figures.power_mw;
  gpu.power_limit_mw = figures.power_limit_mw;
  gpu.temperature_celsius = figures.temperature;
  gpu.slowdown_celsius = figures.slowdown_temperature;
  gpu.sm_clock_mhz = figures.sm_clock_mhz;
  if (figures.clock_limits) gpu.clock_limits = clock_limit_words(*figures.clock_limits);
  gpu.ecc_uncorrected = figures.ecc_uncorrected;
  gpu.xid_errors = figures.xid_errors;
}

// Of a lease, a request or a booking.
template <class Shown>
void show_share(const ComputeShare& share, Shown& shown) {
  if (share.least != 0) shown.compute_percent = share.least;
  if (share.most != 0) shown.compute_max_percent = share.most;
}

proto::LatencyClass shown_latency(LatencyClass latency) {
  return proto::enum_of<proto::LatencyClass>(to_string(latency));
}

std::optional<RequestId> held_for(const LeaseTables& tables, const GpuUuid& gpu) {
  const auto held = tables.held.find(gpu);
  return held == tables.held.end() ? std::nullopt : std::optional(held->second);
}

}  // namespace

std::optional<Bytes> Views::used_by(const GpuProcess& process, const GpuUuid& gpu) const {
  return process.used ? process.used : parts_.tenants.counted_in(process.pid, gpu);
}

std::optional<Bytes> Views::used_by(LeaseId lease, const LeaseGpu& share,
                                    const GpuEntry& gpu) const {
  // Programs that have a whole GPU need not be connected, so the sum would miss some.
  if (!gpu.sample.lists_processes && !share.limit) return std::nullopt;
  std::optional<Bytes> sum{Bytes()};
  for (const GpuProcess& process : gpu.sample.processes) {
    if (lease_of(process.pid, gpu.info.uuid) != lease) continue;
    const auto used = used_by(process, gpu.info.uuid);
    if (!used) return std::nullopt;
    *sum += *used;
  }
  return sum;
}

std::optional<LeaseId> Views::lease_of(pid_t pid, const GpuUuid& gpu) const {
  const Attribution::Owner& owner = parts_.attribution.owner_of(pid);
  if (owner.lease || !owner.uid) return owner.lease;
  return find_reservation(parts_.tables, *owner.uid, gpu);
}

proto::LeaseGpu Views::lease_gpu(LeaseId id, const LeaseGpu& share, std::set<pid_t>& pids) const {
  proto::LeaseGpu shown{.index = -1, .label = "lost"};  // both replaced if the GPU is found
  shown.uuid = share.uuid;
  shown.limit_bytes = share.limit;
  if (!share.oversize.is_zero()) {
    shown.limit_bytes = *share.limit + share.oversize;
    shown.oversize_bytes = share.oversize;
  }
  shown.soft_limit_bytes = share.soft_limit;
  if (const GpuEntry* gpu = parts_.gpus.find(share.uuid)) {
    shown.index = gpu->info.index;
    shown.label = parts_.gpus.name_of(share.uuid);
    shown.used_bytes = used_by(id, share, *gpu);
    for (const GpuProcess& process : gpu->sample.processes) {
      if (lease_of(process.pid, share.uuid) == id) {
        pids.insert(process.pid);
        ++shown.processes;
      }
    }
  }
  if (const lease::Account* account = parts_.grants.find(id, share.uuid).if_there()) {
    shown.granted_bytes = account->charged();
  }
  if (!share.swap) return shown;
  const sched::Holding held = parts_.turns.holding(id, share.uuid);
  shown.granted_bytes = held.resident + held.coming + held.wired + held.beside + held.lingering;
  shown.moved_out_bytes = held.out() - held.coming;
  const auto turn = parts_.turns.turns().explain(id, parts_.loop.now());
  if (turn && turn->takes_turns) {
    shown.turn = to_string(turn->phase);
    shown.turn_position = turn->position;
  }
  return shown;
}

void Views::show_enforcement(const LeaseEntry& entry, proto::Lease& lease) const {
  if (entry.lease.exclusive()) return;
  const DriverLimits& driver = parts_.driver_limits;
  lease.enforced_by =
      driver.limits(entry) ? proto::Enforcer::kLibraryAndDriver : proto::Enforcer::kLibrary;
  if (std::string why = driver.why_not(entry); !why.empty()) lease.not_by_driver = std::move(why);
  for (proto::LeaseGpu& gpu : lease.gpus) gpu.driver_limit_bytes = driver.limit_of(entry, gpu.uuid);
}

std::optional<proto::LastMinute> Views::last_minute(LeaseId id) const {
  const std::optional<LastMinute> minute = parts_.held_back.last_minute(id, parts_.loop.now());
  const auto known =
      minute ? std::chrono::floor<std::chrono::seconds>(minute->known) : std::chrono::seconds();
  if (known.count() == 0) return std::nullopt;
  const auto percent = [&](Duration time) {
    return static_cast<int>(std::lround(100.0 * static_cast<double>(time.count()) /
                                        static_cast<double>(minute->known.count())));
  };
  proto::LastMinute shown;
  shown.seconds = known.count();
  shown.held_percent = percent(minute->held);
  if (minute->got) shown.got_percent = percent(*minute->got);
  if (minute->bounded) shown.bounded_percent = percent(*minute->bounded);
  for (const auto& [other, time] : minute->held_for) {
    proto::HeldFor& held = shown.held_for.emplace_back();
    held.lease_id = other;
    held.percent = percent(time);
    const LeaseEntry* const entry = parts_.tables.find(other);
    if (entry) held.latency = shown_latency(entry->lease.latency);
  }
  std::stable_sort(shown.held_for.begin(), shown.held_for.end(),
                   [](const auto& a, const auto& b) { return a.percent > b.percent; });
  return shown;
}

void Views::show_compute(const LeaseEntry& entry, proto::Lease& lease) const {
  lease.latency = shown_latency(entry.lease.latency);
  show_share(entry.lease.compute(), lease);
  if (const std::set<LeaseId> whom = parts_.latency.held_back_for(entry.lease.id); !whom.empty()) {
    lease.held_back_for.emplace(whom.begin(), whom.end());
  }
}

proto::Lease Views::lease(const LeaseEntry& entry, uid_t viewer) const {
  proto::Lease lease;
  lease.lease_id = entry.lease.id;
  lease.share = entry.lease.exclusive() ? proto::Share::kExclusive
                : entry.lease.swap()    ? proto::Share::kSwap
                                        : proto::Share::kSlice;
  lease.priority = entry.lease.priority;
  show_compute(entry, lease);
  if (entry.lease.quantum) lease.quantum_ms = entry.lease.quantum->count();
  if (entry.lease.warning.is_set()) {
    lease.warn_seconds = static_cast<int>(entry.lease.warning.before.count());
    lease.warn_signal = std::string(warning_signal_name(entry.lease.warning.signal));
  }
  lease.leaves = entry.lease.leaves;
  if (entry.lease.park != ParkState::kNone) {
    lease.parked = proto::enum_of<proto::ParkState>(to_string(entry.lease.park));
  }
  if (const Reason* const why = parts_.parker.wishes().waits_for(entry.lease.id)) {
    lease.park_wait = wire_reason(*why);
  }
  lease.kind = proto::enum_of<proto::LeaseKind>(to_string(entry.lease.kind));
  lease.state = entry.cause                                 ? proto::LeaseState::kEnding
                : entry.lease.state == LeaseState::kExpired ? proto::LeaseState::kExpired
                                                            : proto::LeaseState::kActive;
  lease.uid = entry.lease.uid;
  lease.user = parts_.processes.user_name(entry.lease.uid);
  if (!entry.lease.as_name.empty()) lease.as_name = entry.lease.as_name;
  if (entry.lease.kind == LeaseKind::kPod) lease.pod = pod_of(entry.lease.as_name);
  lease.since = entry.lease.since;
  lease.ends = entry.lease.ends;
  std::set<pid_t> pids;
  for (const LeaseGpu& share : entry.lease.gpus) {
    lease.gpus.push_back(lease_gpu(entry.lease.id, share, pids));
  }
  lease.processes = static_cast<int>(pids.size());
  show_enforcement(entry, lease);
  if (!sees_all(viewer, entry.lease.uid)) return lease;
  if (std::string group = parts_.driver_limits.others_group(entry); !group.empty()) {
    lease.limited_group = std::move(group);
  }
  lease.held_seconds =
      std::chrono::floor<std::chrono::seconds>(parts_.latency.held(entry.lease.id)).count();
  lease.last_minute = last_minute(entry.lease.id);
  if (!entry.lease.name.empty()) lease.name = entry.lease.name;
  if (entry.lease.kind == LeaseKind::kPod) lease.allocation = entry.ticket;
  if (entry.main) lease.pid = entry.main->pid();
  if (!entry.commands.empty()) lease.pid = entry.commands.begin()->first;
  lease.command = proto::sendable_command(entry.lease.command);
  lease.note = entry.lease.note;
  lease.park_trouble = parts_.parker.last_trouble(entry.lease.id);
  lease.model = model_of(entry.lease.command);
  for (auto pid = pids.begin(); !lease.model && pid != pids.end(); ++pid) {
    if (std::distance(pids.begin(), pid) >= kMostAsked) break;
    if (const auto command = parts_.processes.command_of(*pid)) lease.model = model_of(*command);
  }
  return lease;
}

proto::Gpu Views::gpu(const GpuEntry& entry) const {
  proto::Gpu gpu;
  gpu.index = entry.info.index;
  gpu.label = parts_.gpus.name_of(entry.info.uuid);
  gpu.uuid = entry.info.uuid;
  gpu.name = entry.info.name;
  gpu.pci = entry.info.pci;
  if (!entry.info.parent.value.empty()) gpu.parent = entry.info.parent;
  gpu.memory_bytes = entry.info.memory;
  gpu.used_bytes = memory_in_use(entry.info, entry.sample);
  if (entry.info.unified) gpu.unified = true;
  bool taken = false;
  for (const auto& [id, lease] : parts_.tables.leases) {
    const LeaseGpu* share = lease.lease.find_gpu(entry.info.uuid);
    if (share) gpu.leases.push_back(id);
    if (!share || !counts_on(lease.lease, entry.info)) continue;
    if (!share->swap) gpu.reserved_bytes += share->limit.value_or(entry.info.memory);
    taken |= lease.lease.kind != LeaseKind::kFiller || lease.lease.state == LeaseState::kExpired;
  }
  const GpuStates::Unreserved& use = parts_.states.unreserved(entry.info.uuid);
  const Bytes unreserved = use.all;
  show_hidden(use.hidden, gpu);
  const std::string strangers = strangers_on(entry.info.uuid);
  gpu.unreserved_bytes = unreserved;
  gpu.held_for = held_for(parts_.tables, entry.info.uuid);
  // Fillers do not count as use: they leave as soon as somebody needs the GPU.
  gpu.state = taken                    ? proto::GpuState::kInUse
              : entry.info.mig_enabled ? proto::GpuState::kSplit
              : gpu.held_for           ? proto::GpuState::kHeld
                                       : proto::GpuState::kAvailable;
  if (unreserved > parts_.config.unreserved_threshold) {
    gpu.state = proto::GpuState::kUnreservedUse;
    gpu.detail = fmt::format("{} in use without a lease{}", to_string(unreserved), strangers);
  } else if (!strangers.empty()) {
    if (!taken) gpu.state = proto::GpuState::kUnreservedUse;
    gpu.detail = "in use without a lease" + strangers;
  }
  if (entry.info.mig_enabled) gpu.detail = "split into MIG instances; leases use those instead";
  const ports::StoredGpuState& state = parts_.states.of(entry.info.uuid);
  if (state.draining) {
    gpu.state = proto::GpuState::kDraining;
    gpu.detail = state.drain_reason;
  }
  if (gpu.leases.empty() && state.idle_since != WallTime()) gpu.idle_since = state.idle_since;
  gpu.utilisation_percent = entry.sample.load_percent;
  if (entry.info.compute_major > 0) {
    gpu.compute_capability =
        fmt::format("{}.{}", entry.info.compute_major, entry.info.compute_minor);
  }
  gpu.nvlink_group = entry.nvlink_group;
  show_board(entry.figures, gpu);
  if (!parts_.config.gpu_classes.empty()) {
    gpu.classes = classes_of(parts_.config.gpu_classes, entry.info, parts_.gpus.infos());
  }
  if (!entry.sample.error.empty()) {
    gpu.state = proto::GpuState::kError;
    gpu.detail = entry.sample.error;
  }
  return gpu;
}

std::optional<proto::FairShare> Views::share(uid_t uid) const {
  const auto share = parts_.order.share_of(uid);
  if (!share) return std::nullopt;
  proto::FairShare shown;
  shown.used_seconds = share->used.count();
  shown.weight = share->weight;
  shown.half_life_seconds = parts_.config.fair_share.half_life.count();
  if (share->group.empty()) return shown;
  shown.group = share->group;
  shown.group_used_seconds = share->group_used.count();
  shown.group_weight = share->group_weight;
  return shown;
}

void Views::show_order(const QueueEntry& entry, proto::Request& request) const {
  request.fair_share = share(entry.asked.uid);
  if (!request.fair_share) return;
  request.overdue = parts_.order.is_overdue(entry);
  const QueueEntry* const other = parts_.order.passing(entry);
  if (!other) return;
  request.passed_by = proto::Passing{other->id, user_name(other->asked.uid),
                                     share(other->asked.uid).value_or(proto::FairShare())};
}

proto::Reason Views::wait_reason(const QueueEntry& entry, uid_t viewer) const {
  Reason reason = entry.reason;
  if (sees_all(viewer, entry.asked.uid)) reason.remedy = parts_.availability.remedy(entry);
  return wire_reason(reason);
}

proto::Request Views::request(const QueueEntry& entry, uid_t viewer) const {
  proto::Request request;
  request.request_id = entry.id;
  request.position = entry.waiting.position;
  request.kind = proto::enum_of<proto::LeaseKind>(to_string(entry.asked.kind));
  request.uid = entry.asked.uid;
  request.user = parts_.processes.user_name(entry.asked.uid);
  if (!entry.asked.as_name.empty()) request.as_name = entry.asked.as_name;
  request.since = entry.since;
  const lease::PlacementRequest& placement = entry.asked.placement;
  request.gpus = placement.gpus.empty() ? placement.count : static_cast<int>(placement.gpus.size());
  if (!placement.gpus.empty()) request.gpu_ids = placement.gpus;
  request.memory = placement.memory;
  request.swap = placement.swap;
  if (placement.oversize) request.oversize = true;
  const GpuWishes& wishes = placement.wishes;
  if (!wishes.type.empty()) request.gpu_type = wishes.type;
  if (!wishes.min_memory.is_zero()) request.min_memory_bytes = wishes.min_memory;
  if (wishes.min_cc != 0) request.min_cc = wishes.min_cc;
  if (!wishes.gpu_class.empty()) request.gpu_class = wishes.gpu_class;
  if (entry.asked.lasts) {
    request.seconds = std::chrono::duration_cast<std::chrono::seconds>(*entry.asked.lasts).count();
  }
  request.latency = shown_latency(entry.asked.latency);
  show_share(placement.compute, request);
  request.free = entry.waiting.free_now;
  std::vector<std::string>& labels = request.planned_labels.emplace();
  for (const GpuUuid& uuid : entry.waiting.planned) {
    const GpuEntry* const gpu = parts_.gpus.find(uuid);
    if (!gpu) continue;
    request.planned.push_back(gpu->info.index);
    labels.push_back(parts_.gpus.name_of(uuid));
  }
  request.expected = entry.waiting.expected;
  request.reason = reason_text(entry.reason, parts_.wall_clock());
  request.wait_reason = wait_reason(entry, viewer);
  show_order(entry, request);
  if (!sees_all(viewer, entry.asked.uid)) return request;
  request.pid = entry.holder.pid();
  request.command = proto::sendable_command(entry.asked.command);
  request.note = entry.asked.note;
  if (!entry.asked.name.empty()) request.name = entry.asked.name;
  return request;
}

proto::Booking Views::booking(const BookingEntry& entry, uid_t viewer) const {
  proto::Booking booking;
  booking.request_id = entry.id;
  booking.uid = entry.asked.uid;
  booking.user = parts_.processes.user_name(entry.asked.uid);
  if (!entry.asked.as_name.empty()) booking.as_name = entry.asked.as_name;
  booking.made = entry.made;
  booking.begins = entry.begins;
  booking.ends = entry.ends();
  booking.gpu_ids = entry.kept;
  for (const GpuUuid& gpu : entry.kept) booking.labels.push_back(parts_.gpus.name_of(gpu));
  booking.memory = entry.asked.placement.memory;
  booking.latency = shown_latency(entry.asked.latency);
  show_share(entry.asked.placement.compute, booking);
  if (entry.trouble) {
    booking.trouble = reason_text(*entry.trouble, parts_.wall_clock());
    booking.wait_reason = wire_reason(*entry.trouble);
  }
  if (entry.on_time) booking.on_time = true;
  if (entry.waits_for_use) booking.waits_for_use = true;
  if (sees_all(viewer, entry.asked.uid)) booking.note = entry.asked.note;
  return booking;
}

std::optional<proto::Container> Views::container_of(pid_t pid) const {
  const auto& container = parts_.attribution.owner_of(pid).container;
  if (!container) return std::nullopt;
  proto::Container shown;
  shown.engine = proto::enum_of<proto::ContainerEngine>(container->engine);
  shown.container_id = container->id;
  if (!container->pod.empty()) shown.pod = container->pod;
  const auto called = parts_.watch.container_name(*container, pid);
  if (called && !called->name.empty()) shown.name = called->name;
  if (called && !called->image.empty()) shown.image = called->image;
  return shown;
}

// " by 2 processes of alice, bob and 1 more": who is on a GPU and should not be.
std::string Views::strangers_on(const GpuUuid& gpu) const {
  std::vector<std::string> users;
  std::size_t processes = 0;
  bool container = false;
  for (const watch::Finding& found : parts_.watch.seen()) {
    const bool stranger = found.kind == watch::FindingKind::kUnreservedUse ||
                          found.kind == watch::FindingKind::kForeignUse;
    if (found.gpu != gpu || !stranger) continue;
    users.push_back(found.uid ? parts_.processes.user_name(*found.uid) : "an unknown user");
    processes += found.processes.size();
    container |= found.container;
  }
  if (users.empty()) return {};
  if (processes == 0) return " by no listed process";
  std::string text =
      fmt::format(" by {} process{} of {}", processes, processes == 1 ? "" : "es", users[0]);
  if (users.size() > 1) text += (users.size() == 2 ? " and " : ", ") + users[1];
  if (users.size() > 2) text += fmt::format(" and {} more", users.size() - 2);
  return text +
         (container ? " (a container is not in the lease of the command that asked for it)" : "");
}

proto::Finding Views::finding(const watch::Finding& found, uid_t viewer) const {
  proto::Finding shown;
  shown.kind = proto::enum_of<proto::FindingKind>(watch::to_string(found.kind));
  shown.action = proto::enum_of<proto::FindingAction>(watch::to_string(found.action));
  if (const GpuEntry* gpu = parts_.gpus.find(found.gpu)) shown.gpu = gpu->info.index;
  shown.gpu_uuid = found.gpu;
  shown.lease_id = found.lease;
  shown.uid = found.uid;
  if (found.uid) shown.user = parts_.processes.user_name(*found.uid);
  shown.since = parts_.watch.wall_time(found.since);
  shown.used_bytes = found.used;
  shown.process_count = static_cast<int>(found.processes.size());
  shown.container = found.container;
  shown.perhaps_of = found.perhaps_of;
  if (!sees_all(viewer, found.uid)) return shown;
  shown.processes.emplace();
  for (const watch::SeenProcess& process : found.processes) {
    proto::FoundProcess& one = shown.processes->emplace_back();
    one.pid = process.pid;
    one.used_bytes = process.used;
    if (const auto command = parts_.processes.command_of(process.pid)) {
      one.command = proto::sendable_command(*command);
    }
    if (process.container) one.container = container_of(process.pid);
  }
  return shown;
}

bool Views::may_know_of(const ports::StoredEvent& stored, uid_t viewer) const {
  using proto::EventType;
  for (const auto type :
       {EventType::kCallDenied, EventType::kGrantDenied, EventType::kWorkHeldBack}) {
    if (stored.type == proto::to_string(type)) return sees_all(viewer, stored.uid);
  }
  return true;
}

proto::Event Views::event(const ports::StoredEvent& stored, uid_t viewer) const {
  proto::Event shown;
  shown.event_id = stored.id;
  shown.time = stored.time;
  shown.type = proto::enum_of<proto::EventType>(stored.type);
  shown.lease_id = stored.lease;
  shown.gpu = stored.gpu_index;
  if (!stored.gpu.value.empty()) shown.gpu_uuid = stored.gpu;
  shown.uid = stored.uid;
  if (stored.uid) shown.user = parts_.processes.user_name(*stored.uid);
  if (!stored.finding.empty()) {
    shown.finding = proto::enum_of<proto::FindingKind>(stored.finding);
  }
  shown.used_bytes = stored.bytes;
  shown.count = stored.count;
  shown.message = stored.message;
  if (!sees_all(viewer, stored.uid)) return shown;
  shown.pids = stored.pids;
  if (!stored.detail.empty()) shown.detail = stored.detail;
  return shown;
}

proto::Status::Reply Views::status(uid_t viewer) const {
  proto::Status::Reply reply;
  const std::vector<lease::Available> available = parts_.availability.available();
  for (const GpuEntry& entry : parts_.gpus.entries()) {
    proto::Gpu& shown = reply.gpus.emplace_back(gpu(entry));
    shown.available_bytes = available[reply.gpus.size() - 1].slice;
    if (!entry.info.unified) shown.swap_available_bytes = available[reply.gpus.size() - 1].turns;
  }
  for (const auto& [id, entry] : parts_.tables.leases) {
    reply.leases.push_back(lease(entry, viewer));
  }
  for (const watch::Finding& found : parts_.watch.seen()) {
    reply.findings.push_back(finding(found, viewer));
    if (found.kind != watch::FindingKind::kUnused) continue;
    for (proto::Lease& lease : reply.leases) {
      for (proto::LeaseGpu& gpu : lease.gpus) {
        if (lease.lease_id == found.lease && gpu.uuid == found.gpu) {
          gpu.unused_since = parts_.watch.wall_time(found.since);
        }
      }
    }
  }
  reply.waiting = parts_.tables.requests.size();
  std::vector<proto::Booking>& booked = reply.bookings.emplace();
  for (const BookingEntry& entry : parts_.tables.bookings) {
    booked.push_back(booking(entry, viewer));
  }
  return reply;
}

proto::Process Views::process(const GpuEntry& gpu, const GpuProcess& process, uid_t viewer) const {
  proto::Process shown;
  const Attribution::Owner& owner = parts_.attribution.owner_of(process.pid);
  shown.uid = owner.uid;
  if (owner.uid) shown.user = parts_.processes.user_name(*owner.uid);
  shown.gpu = gpu.info.index;
  shown.gpu_label = parts_.gpus.name_of(gpu.info.uuid);
  shown.gpu_uuid = gpu.info.uuid;
  shown.type = process.graphics ? proto::ProcessType::kGraphics : proto::ProcessType::kCompute;
  shown.used_bytes = used_by(process, gpu.info.uuid);
  shown.lease_id = lease_of(process.pid, gpu.info.uuid);
  const auto use = parts_.tenants.use_of(process.pid, gpu.info.uuid);
  shown.tenant = use.has_value();
  shown.library = library_state(parts_.watch.library_of(gpu.info.uuid, process.pid));
  if (!sees_all(viewer, owner.uid)) return shown;
  shown.pid = process.pid;
  if (const auto command = parts_.processes.command_of(process.pid)) {
    shown.command = proto::sendable_command(*command);
  }
  shown.container = container_of(process.pid);
  if (use) {
    shown.allocations = use->allocations;
    shown.refusals = use->refusals;
    shown.unhooked = use->unhooked;
    shown.unhooked_names = use->unhooked_names;
    shown.held_seconds = std::chrono::floor<std::chrono::seconds>(use->held).count();
    shown.bursts = use->bursts;
    shown.share_wait_seconds = std::chrono::floor<std::chrono::seconds>(use->waited).count();
  }
  return shown;
}

// Whether a process of `whole` runs on one of its MIG instances. The driver lists such a process at
// the whole GPU too, and views show it only once.
bool Views::is_on_instance(pid_t pid, const GpuEntry& whole) const {
  const std::vector<GpuEntry>& gpus = parts_.gpus.entries();
  if (!whole.info.mig_enabled) return false;
  return std::any_of(gpus.begin(), gpus.end(), [&](const GpuEntry& gpu) {
    const std::vector<GpuProcess>& seen = gpu.sample.processes;
    return gpu.info.parent == whole.info.uuid &&
           std::any_of(seen.begin(), seen.end(), [&](const auto& p) { return p.pid == pid; });
  });
}

proto::ListProcesses::Reply Views::processes(uid_t viewer, std::optional<LeaseId> lease) const {
  proto::ListProcesses::Reply reply;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    for (const GpuProcess& seen : gpu.sample.processes) {
      if (is_on_instance(seen.pid, gpu)) continue;
      if (lease && lease_of(seen.pid, gpu.info.uuid) != lease) continue;
      reply.processes.push_back(process(gpu, seen, viewer));
    }
  }
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (is_off(entry.lease.park) && (!lease || *lease == id)) {
      add_parked(entry, viewer, reply);
    }
  }
  return reply;
}

// Parked processes, which the driver does not list, are shown on the first GPU of their lease.
void Views::add_parked(const LeaseEntry& entry, uid_t viewer,
                       proto::ListProcesses::Reply& reply) const {
  const GpuEntry* const gpu = parts_.gpus.find(entry.lease.gpus.front().uuid);
  if (!gpu) return;
  for (const ports::ProcessId& parked : entry.parked) {
    const auto& seen = gpu->sample.processes;
    const bool listed = std::any_of(seen.begin(), seen.end(),
                                    [&](const auto& each) { return each.pid == parked.pid; });
    if (listed || !ports::is_still(parts_.processes, parked)) continue;
    reply.processes.push_back(process(*gpu, {parked.pid, Bytes()}, viewer));
  }
}

}  // namespace gpurota::daemon
