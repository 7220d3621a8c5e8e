// Also defines the views of turns, a part of views.h.
#include "daemon/control/turns_methods.h"

#include "daemon/control/calls.h"
#include "daemon/gpus/gpu_settings.h"
#include "daemon/leases/turn_wishes.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/gpu_selector.h"
#include "proto/codec.h"
#include "sched/host_needs.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

std::int64_t whole_milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

std::optional<LeaseId> known(LeaseId id) {
  return id.value == 0 ? std::nullopt : std::optional(id);
}

const char* word(sched::TurnsMode mode) {
  return mode == sched::TurnsMode::kOn ? "on" : mode == sched::TurnsMode::kOff ? "off" : "auto";
}

}  // namespace

proto::TurnLease Views::turn(const LeaseEntry& entry, const GpuUuid& gpu, uid_t viewer) const {
  proto::TurnLease shown;
  const Lease& lease = entry.lease;
  shown.lease_id = lease.id;
  shown.uid = lease.uid;
  shown.user = parts_.processes.user_name(lease.uid);
  shown.priority = lease.priority;
  if (const LeaseGpu* share = lease.find_gpu(gpu)) {
    shown.limit_bytes = share->limit.value_or(Bytes()) + share->oversize;
    if (!share->oversize.is_zero()) shown.oversize_bytes = share->oversize;
    shown.soft_limit_bytes = share->soft_limit;
  }
  const auto view = parts_.turns.turns().explain(lease.id, parts_.loop.now());
  if (!view) return shown;
  shown.phase = to_string(view->phase);
  shown.waits_for = to_string(view->wait);
  shown.behind = known(view->behind);
  shown.position = view->position;
  if (view->earliest) shown.earliest = wall_time_of(*view->earliest);
  shown.quantum_ms = whole_milliseconds(view->quantum);
  if (lease.quantum) shown.own_quantum_ms = lease.quantum->count();
  if (shown.soft_limit_bytes) shown.above_soft_limit = view->above_soft;
  const sched::Holding held = parts_.turns.holding(lease.id, gpu);
  shown.resident_bytes = held.resident;
  shown.coming_bytes = held.coming;
  shown.out_bytes = held.out() - held.coming;
  shown.wired_bytes = held.wired + held.beside + held.lingering;
  if (shown.oversize_bytes) shown.hosted_bytes = held.hosted;
  const HostPins pins = parts_.turns.pins_of(lease.id);
  shown.pinned_bytes = pins.pinned;
  shown.may_pin_bytes = pins.may_pin;
  shown.may_move_bytes = pins.may_move;
  const pid_t pid = view->process.value == 0 ? 0 : parts_.turns.pid_of(view->process);
  if (pid > 0 && sees_all(viewer, lease.uid)) shown.pid = pid;
  return shown;
}

WallTime Views::wall_time_of(TimePoint moment) const {
  constexpr std::chrono::seconds kSet(1);
  const TimePoint now = parts_.loop.now();
  const WallTime wall = parts_.wall_clock();
  const auto of_boot = [](TimePoint time) {
    return std::chrono::duration_cast<WallTime::duration>(time.time_since_epoch());
  };
  const WallTime::duration apart = wall.time_since_epoch() - of_boot(now);
  const bool is_set = !since_boot_ || apart > *since_boot_ + kSet || apart < *since_boot_ - kSet;
  if (is_set) since_boot_ = apart;
  return WallTime(*since_boot_ + of_boot(moment));
}

proto::TurnGpu Views::turns(const GpuEntry& gpu, uid_t viewer) const {
  proto::TurnGpu shown;
  shown.index = gpu.info.index;
  shown.uuid = gpu.info.uuid;
  for (const sched::GpuView& view : parts_.turns.turns().view()) {
    if (view.settings.uuid != gpu.info.uuid) continue;
    shown.mode = word(view.settings.mode);
    shown.takes_turns = view.takes_turns;
    shown.capacity_bytes = view.settings.capacity;
    shown.used_bytes = view.used;
    shown.deficit_bytes = view.deficit;
    if (view.settings.quantum) shown.quantum_ms = whole_milliseconds(*view.settings.quantum);
    shown.holder = known(view.holder);
    shown.waiting = view.waiting;
    shown.evictions = view.counts.evictions;
    shown.handovers = view.counts.handovers;
    shown.evicted_bytes = view.counts.evicted;
    shown.restored_bytes = view.counts.restored;
    for (const sched::SwitchRecord& each : view.switches) {
      const sched::Moved& moved = each.moved;
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(moved.took);
      shown.switches.push_back({wall_time_of(each.at), known(each.from), each.to, moved.in,
                                moved.out, moved.clean, took.count()});
    }
  }
  for (const auto& [id, entry] : parts_.tables.leases) {
    const LeaseGpu* share = entry.lease.find_gpu(gpu.info.uuid);
    if (share && share->swap) shown.leases.push_back(turn(entry, gpu.info.uuid, viewer));
  }
  return shown;
}

Outcome TurnsMethods::on(const Caller& caller, const proto::ListTurns& call) {
  std::vector<GpuUuid> chosen;
  if (call.gpu_ids) {
    auto selected = lease::select_gpus(*call.gpu_ids, parts_.gpus.infos());
    if (!selected) return refused(selected.error());
    chosen = std::move(*selected);
  }
  proto::ListTurns::Reply reply;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    const bool named = std::find(chosen.begin(), chosen.end(), gpu.info.uuid) != chosen.end();
    if (gpu.info.mig_enabled || (call.gpu_ids && !named)) continue;
    reply.gpus.push_back(parts_.views.turns(gpu, caller.uid));
  }
  reply.host_budget_bytes = parts_.turns.host_budget();
  reply.host_out_bytes = sched::HostNeeds(parts_.turns.turns().residency()).out_now();
  return replied<proto::ListTurns>(reply);
}

Result<void> TurnsMethods::set_gpus(const Caller& caller, const proto::SetGpus& call) {
  if (!call.capacity && !call.quantum && !call.turns && !call.reset.value_or(false)) {
    return fail(Code::kInvalid, "nothing to set: give capacity, quantum, turns or reset");
  }
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<GpuUuid> gpus,
                           lease::select_gpus(call.gpu_ids, parts_.gpus.infos()));
  std::vector<ports::StoredGpuState> states;
  for (const GpuUuid& uuid : gpus) {
    ports::StoredGpuState state = parts_.states.of(uuid);
    state.uuid = uuid;
    if (call.reset.value_or(false)) {
      state.capacity.reset();
      state.quantum.reset();
      state.turns.clear();
    }
    if (call.capacity) state.capacity = call.capacity;
    if (call.quantum) {
      GPUROTA_ASSIGN_OR_RETURN(state.quantum, read_quantum(call.quantum, true));
    }
    if (call.turns) {
      if (!config::parse_turns_mode(*call.turns)) {
        return fail(Code::kInvalid, "turns are \"auto\", \"on\" or \"off\"");
      }
      state.turns = *call.turns;
    }
    const GpuEntry* const gpu = parts_.gpus.find(uuid);
    if (!gpu) return fail(Code::kNotFound, "there is no GPU " + uuid.value);
    const GpuInfo& info = gpu->info;
    if (call.capacity && call.capacity->of(info.memory) > info.memory) {
      return fail(Code::kInvalid, fmt::format("GPU {} has {}: its capacity cannot be more",
                                              info.index, to_string(info.memory)));
    }
    GPUROTA_TRY(parts_.turns.check(info, settings_of(info, parts_.config, state)));
    states.push_back(std::move(state));
  }
  for (const ports::StoredGpuState& state : states) {
    GPUROTA_TRY(parts_.states.set(state));
    const GpuEntry* const gpu = parts_.gpus.find(state.uuid);
    if (!gpu) continue;
    const GpuInfo& info = gpu->info;
    const GpuSettings now = settings_of(info, parts_.config, state);
    Recorder::Event event;
    event.type = proto::EventType::kGpuSet;
    event.gpu = state.uuid;
    event.uid = caller.uid;
    event.message = fmt::format("GPU {} is set: capacity {}, turns {}, quantum {}", info.index,
                                to_string(now.capacity), to_string(now.mode),
                                now.quantum ? fmt::format("{} ms", now.quantum->count()) : "auto");
    parts_.recorder.record(std::move(event));
  }
  parts_.turns.refresh();
  parts_.queue.poke();
  return {};
}

Outcome TurnsMethods::on(const Caller& caller, const proto::SetGpus& call) {
  const auto set = set_gpus(caller, call);
  if (!set) return refused(set.error());
  return replied<proto::SetGpus>({});
}

}  // namespace gpurota::daemon
