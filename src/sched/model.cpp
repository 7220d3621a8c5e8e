#include "sched/model.h"

namespace gpurota::sched {
namespace {

std::string name(TenantId id) { return "T" + std::to_string(id.value); }

std::string at(TenantId tenant, const GpuUuid& gpu) { return name(tenant) + " on " + gpu.value; }

struct EventText {
  std::string operator()(const AddTenant& e) const {
    std::string text = "add " + name(e.tenant) + " of " + to_string(e.lease);
    for (const TenantMemory& m : e.memory) {
      text += ", " + m.gpu.value + ": " + gpurota::to_string(m.resident) + " of " +
              gpurota::to_string(m.movable) + ", wired " + gpurota::to_string(m.wired);
    }
    if (e.replaces.value != 0) text += ", was " + name(e.replaces);
    return e.gate_open ? text + ", running" : text;
  }
  std::string operator()(const TenantDied& e) const { return name(e.tenant) + " died"; }
  std::string operator()(const RemoveTenant& e) const { return "remove " + name(e.tenant); }
  std::string operator()(const Reachable& e) const {
    return name(e.tenant) + (e.reachable ? " answers" : " does not answer");
  }
  std::string operator()(const TenantStatus& e) const {
    return name(e.tenant) + " at " + std::to_string(e.gate_seq) + (e.busy ? " busy" : " drained") +
           ", waiting " + std::to_string(e.waiting) + ", ready " + std::to_string(e.ready);
  }
  std::string operator()(const Grow& e) const {
    return at(e.tenant, e.gpu) + " wants " + gpurota::to_string(e.bytes) +
           (e.wired    ? " wired"
            : e.hosted ? " in host memory"
                       : "");
  }
  std::string operator()(const Shrink& e) const {
    return at(e.tenant, e.gpu) + " freed " + gpurota::to_string(e.resident) + " resident, " +
           gpurota::to_string(e.out) + " out, " + gpurota::to_string(e.wired) + " wired, " +
           gpurota::to_string(e.hosted) + " in host memory";
  }
  std::string operator()(const Measured& e) const {
    return at(e.tenant, e.gpu) + " holds " + gpurota::to_string(e.beside) + " beside" +
           (e.confirms ? ", and the rest is gone" : "");
  }
  std::string operator()(const Evicted& e) const {
    return at(e.tenant, e.gpu) + " evicted " + gpurota::to_string(e.bytes) + ", not " +
           gpurota::to_string(e.returned) + (e.failed ? ", failed" : "") +
           (e.doubted ? ", as it says" : "");
  }
  std::string operator()(const Restored& e) const {
    return at(e.tenant, e.gpu) + " restored " + gpurota::to_string(e.bytes) + ", not " +
           gpurota::to_string(e.returned) + (e.failed ? ", failed" : "");
  }
  std::string operator()(const Tick&) const { return "tick"; }
};

struct ActionText {
  std::string operator()(const SetGate& a) const {
    const char* order = a.order == GateOrder::kOpen    ? "open "
                        : a.order == GateOrder::kClose ? "close "
                                                       : "let one through at ";
    return order + name(a.tenant) + " (" + std::to_string(a.seq) + ")";
  }
  std::string operator()(const Evict& a) const {
    return "evict " + gpurota::to_string(a.bytes) + " of " + at(a.tenant, a.gpu);
  }
  std::string operator()(const Restore& a) const {
    return "restore " + gpurota::to_string(a.bytes) + " of " + at(a.tenant, a.gpu);
  }
  std::string operator()(const AnswerGrow& a) const {
    return "answer " + at(a.tenant, a.gpu) + ": " + to_string(a.answer) +
           (a.to_host.is_zero() ? ""
                                : ", with " + gpurota::to_string(a.to_host) + " in host memory");
  }
  std::string operator()(const ReportTrouble& a) const {
    static constexpr const char* kWords[] = {
        "does not yield", "does not answer", "could not be moved", "has no room",
        "over capacity",  "is still there",  "is not there"};
    return "report " + to_string(a.lease) + " " + name(a.tenant) + ": " +
           kWords[static_cast<int>(a.trouble)] + (a.ends_in ? ", is to end" : "") +
           (a.stop ? ", stop" : "");
  }
};

}  // namespace

const char* to_string(GrowAnswer answer) {
  switch (answer) {
    case GrowAnswer::kGranted:
      return "granted";
    case GrowAnswer::kRefusedLimit:
      return "refused: the lease's limit";
    case GrowAnswer::kRefusedCapacity:
      return "refused: a lease could no longer be resident on its own";
    case GrowAnswer::kRefusedHost:
      return "refused: host memory could not hold what would be out";
    case GrowAnswer::kRefusedTurnsOff:
      return "refused: it would need turns, which are off";
  }
  return "?";
}

std::string to_string(const Event& event) { return std::visit(EventText{}, event); }
std::string to_string(const Action& action) { return std::visit(ActionText{}, action); }

}  // namespace gpurota::sched
