#include "daemon/control/filler_methods.h"

#include "daemon/control/calls.h"
#include "daemon/control/program_calls.h"
#include "daemon/control/program_deeds.h"
#include "daemon/control/wire_reason.h"
#include "daemon/supervised/fillers.h"
#include "filler/place_reason.h"
#include "keeper/launcher.h"
#include "lease/gpu_selector.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

constexpr std::int64_t kMostIdleSeconds = std::int64_t{7} * 86400;
constexpr std::int64_t kMostGraceSeconds = 60;

Result<std::chrono::seconds> seconds_within(const char* what, std::optional<std::int64_t> given,
                                            std::chrono::milliseconds usual, std::int64_t most) {
  if (!given) return std::chrono::duration_cast<std::chrono::seconds>(usual);
  if (*given < 1 || *given > most) {
    return fail(Code::kInvalid, fmt::format("{}: write a time from 1 s to {} s", what, most));
  }
  return std::chrono::seconds(*given);
}

std::int64_t seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

Result<FillerWishes> wishes_of(const proto::AddFiller& call, const GpuTable& gpus) {
  FillerWishes wishes;
  if (call.on_yield && *call.on_yield != "stop" && *call.on_yield != "evict") {
    return fail(Code::kInvalid,
                "a filler that has to leave is ended (--on-yield stop) or moved to host memory "
                "(--on-yield evict)");
  }
  if (call.on_yield == "evict") wishes.on_yield = filler::OnYield::kEvict;
  if (call.instances && (*call.instances < 1 || *call.instances > 1024)) {
    return fail(Code::kInvalid, "--instances: write a number from 1 to 1024");
  }
  wishes.instances = call.instances;
  if (call.of_free_percent) {
    const bool is_share = *call.of_free_percent >= 1 && *call.of_free_percent <= 100;
    if (!is_share) return fail(Code::kInvalid, "--of-free: write a share from 1% to 100%");
    if (call.memory) return fail(Code::kInvalid, "give --memory or --of-free, not both");
  }
  wishes.memory = call.memory;
  wishes.of_free = call.of_free_percent;
  GPUROTA_ASSIGN_OR_RETURN(wishes.idle_after, seconds_within("--idle-after", call.idle_seconds,
                                                             wishes.idle_after, kMostIdleSeconds));
  GPUROTA_ASSIGN_OR_RETURN(
      wishes.grace, seconds_within("--grace", call.grace_seconds, wishes.grace, kMostGraceSeconds));
  if (!call.gpu_ids) return wishes;
  GPUROTA_ASSIGN_OR_RETURN(wishes.gpus, lease::select_gpus(*call.gpu_ids, gpus.infos()));
  for (const GpuUuid& uuid : wishes.gpus) {
    const GpuEntry* const gpu = gpus.find(uuid);
    if (gpu && gpu->info.mig_enabled) {
      return fail(Code::kInvalid, fmt::format("GPU {} is split into MIG instances: name those "
                                              "(see gpurota status)",
                                              gpus.name_of(uuid)));
    }
  }
  return wishes;
}

// Refuses a filler that could never start, as each GPU that it may use would always refuse it.
Result<void> check_possible(const FillerWishes& wishes, const std::vector<lease::GpuRoom>& rooms) {
  lease::PlacementRequest request;
  request.memory = wishes.memory;
  if (wishes.of_free) request.memory = SizeSpec{Bytes(), *wishes.of_free};
  request.swap = wishes.on_yield == filler::OnYield::kEvict;
  std::optional<lease::Refusal> never;
  for (const lease::GpuRoom& room : rooms) {
    if (!lease::leasable(room) || !wishes.may_use(room.info.uuid)) continue;
    request.gpus = {room.info.uuid};
    auto refusal = lease::impossible(request, rooms);
    if (!refusal) return {};
    if (!never) never = std::move(refusal);
  }
  return never ? tl::unexpected(never->error) : Result<void>();
}

// Why the filler is not on that GPU or cannot stay there. Empty: it is there and may stay.
std::optional<Reason> reason_there(const Fillers& fillers, const FillerEntry& filler,
                                   const FillerSpot& spot, const std::string& gpu) {
  const bool there = spot.filler == filler.id && !spot.moved_out;
  if (!there && filler.paused) return filler::paused_reason();
  if (spot.filler && spot.filler != filler.id) return filler::other_filler_reason(gpu);
  std::optional<WallTime> start;
  if (const auto at = spot.turns.start_at()) start = fillers.wall_time(*at);
  return filler::place_reason(spot.turns, gpu, start);
}

// Reads at most `most` bytes, an equal part from each GPU's log. If there are several logs, a line
// above each names the GPU.
Result<std::string> read_logs(const std::vector<Fillers::Log>& logs, std::size_t most) {
  std::string text;
  for (const Fillers::Log& log : logs) {
    GPUROTA_ASSIGN_OR_RETURN(const jobs::LogPart part,
                             keeper::read_log(log.folder, std::nullopt, most / logs.size()));
    if (logs.size() > 1) text += fmt::format("==> {} <==\n", log.gpu);
    text += part.text;
  }
  return text;
}

}  // namespace

proto::FillerPlace FillerMethods::describe_place(const FillerEntry& filler,
                                                 const GpuEntry& gpu) const {
  proto::FillerPlace place;
  place.gpu = gpu.info.index;
  place.gpu_uuid = gpu.info.uuid;
  place.state = to_string(filler::State::kBusy);
  const auto& spots = parts_.fillers.spots();
  const auto at = spots.find(gpu.info.uuid);
  if (at == spots.end()) return place;
  const FillerSpot& spot = at->second;
  const filler::State state = spot.turns.state();
  place.state = to_string(state);
  place.why = to_string(spot.turns.why());
  const std::string label = parts_.gpus.name_of(gpu.info.uuid);
  if (const auto reason = reason_there(parts_.fillers, filler, spot, label)) {
    place.wait_reason = wire_reason(*reason);
  }
  if (spot.filler == filler.id && spot.moved_out) {
    place.state = "evicted";
    place.lease_id = spot.lease;
    const auto start = spot.turns.start_at();
    if (start && !filler.paused) place.start_at = parts_.fillers.wall_time(*start);
  } else if (spot.filler == filler.id) {
    place.since = parts_.fillers.wall_time(spot.since);
    place.lease_id = spot.lease;
  } else if (spot.filler) {
    place.state = to_string(filler::State::kBusy);
    place.why = "another filler";
  } else if (const auto start = spot.turns.start_at()) {
    place.start_at = parts_.fillers.wall_time(*start);
  }
  return place;
}

proto::Filler FillerMethods::describe_filler(const FillerEntry& filler) const {
  proto::Filler shown;
  describe_program(filler, shown);
  if (!filler.wishes.gpus.empty()) shown.gpu_ids = filler.wishes.gpus;
  shown.instances = filler.wishes.instances;
  shown.memory = filler.wishes.memory;
  shown.of_free_percent = filler.wishes.of_free;
  shown.idle_seconds = seconds_of(filler.wishes.idle_after);
  shown.grace_seconds = seconds_of(filler.wishes.grace);
  shown.on_yield = filler.wishes.on_yield == filler::OnYield::kEvict ? "evict" : "stop";
  bool on = false, evicted = false;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    if (gpu.info.mig_enabled || !filler.wishes.may_use(gpu.info.uuid)) continue;
    shown.places.push_back(describe_place(filler, gpu));
    on |= shown.places.back().since.has_value();
    evicted |= shown.places.back().state == "evicted";
  }
  shown.state = on                        ? "on"
                : filler.paused           ? "paused"
                : evicted                 ? "evicted"
                : !filler.problem.empty() ? "failing"
                                          : "waiting";
  if (!filler.problem.empty()) shown.detail = filler.problem;
  if (filler.paused && !filler.paused_by.empty()) shown.detail = filler.paused_by;
  return shown;
}

Result<const FillerEntry*> FillerMethods::own_filler(const Caller& caller, const std::string& name,
                                                     const std::optional<std::string>& user) const {
  return find_meant(parts_.fillers.entries(), meant_by(parts_, caller, "filler", name, user));
}

Outcome FillerMethods::on(const Caller& caller, const proto::AddFiller& call) {
  if (const auto error = parts_.driver.error) return refused(*error);
  const bool moves = call.on_yield == "evict";
  if ((call.memory || moves) && parts_.preload.empty()) {
    return refused({Code::kUnavailable, 0,
                    fmt::format("libgpurota.so is not installed, so no {}: leave out {}, or see "
                                "gpurota doctor",
                                moves ? "memory could be moved" : "limit could be held",
                                moves ? "--on-yield evict" : "--memory")});
  }
  auto wishes = wishes_of(call, parts_.gpus);
  if (!wishes) return refused(wishes.error());
  const auto possible = check_possible(*wishes, parts_.rooms.list());
  if (!possible) return refused(possible.error());
  const auto added = parts_.fillers.add(caller.uid, spec_of_program(call), std::move(*wishes));
  if (!added) return refused(added.error());
  return replied<proto::AddFiller>({describe_filler(**added)});
}

Outcome FillerMethods::on(const Caller& caller, const proto::ListFillers& call) {
  proto::ListFillers::Reply reply;
  const auto listed = for_all_meant(parts_.fillers.entries(),
                                    meant_by(parts_, caller, "filler", call.name, call.user),
                                    [&](const FillerEntry& filler) {
                                      if (!filler.removed)
                                        reply.fillers.push_back(describe_filler(filler));
                                      return !filler.removed;
                                    });
  if (!listed) return refused(listed.error());
  return replied<proto::ListFillers>(reply);
}

Outcome FillerMethods::on(const Caller& caller, const proto::ControlFiller& call) {
  const auto filler = own_filler(caller, call.name, call.user);
  if (!filler) return refused(filler.error());
  Fillers::What what = Fillers::What::kPause;
  const char* did = "paused";
  if (call.action == "resume") {
    what = Fillers::What::kResume;
    did = "resumed";
  } else if (call.action == "remove") {
    what = Fillers::What::kRemove;
    did = "removed";
  } else if (call.action != "pause") {
    return refused({Code::kInvalid, 0, "a filler can be paused, resumed or removed"});
  }
  const ProgramDeed deed(parts_, caller.uid, "filler", **filler, call.reason);
  const bool changed =
      what == Fillers::What::kRemove || (*filler)->paused != (what == Fillers::What::kPause);
  const auto done = parts_.fillers.control((*filler)->id, what, deed.by());
  if (!done) return refused(done.error());
  if (changed)
    deed.tell(did, what == Fillers::What::kRemove ? NoticeKind::kReleased : NoticeKind::kChanged);
  return replied<proto::ControlFiller>({});
}

Outcome FillerMethods::on(const Caller& caller, const proto::ReadFillerLog& call) {
  const auto filler = own_filler(caller, call.name, call.user);
  if (!filler) return refused(filler.error());
  Outcome outcome;
  outcome.on_worker = [logs = parts_.fillers.logs((*filler)->id), most = log_bytes(call.bytes)] {
    const auto text = read_logs(logs, most);
    return text ? proto::reply_json<proto::ReadFillerLog>({*text})
                : proto::error_json(proto::wire_error(text.error()));
  };
  return outcome;
}

}  // namespace gpurota::daemon
