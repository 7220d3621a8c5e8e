#include "daemon/tenants/tenant_admission.h"

#include "daemon/leases/lease_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace gpurota::daemon {
namespace {

constexpr std::uint32_t kOldestVersion = 1;
// A lease with this many dead tenants gets no new tenant. So a user who keeps starting and killing
// processes must wait until the memory of dead processes is back.
constexpr int kMostDead = 1024;

// Whether the driver counts memory of the lease's GPUs for the process. Empty: not sampled yet.
std::optional<bool> lists(const GpuTable& gpus, const Lease& lease, pid_t pid) {
  bool looked = true;
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* const entry = gpus.find(share.uuid);
    if (!entry || entry->taken == TimePoint{}) {
      looked = false;
      continue;
    }
    const auto& seen = entry->sample.processes;
    if (std::any_of(seen.begin(), seen.end(), [&](const auto& p) { return p.pid == pid; })) {
      return true;
    }
  }
  return looked ? std::optional(false) : std::nullopt;
}

}  // namespace

std::uint32_t TenantAdmission::admit(const TenantSession& session, const gpurota_msg_hello& hello,
                                     const LeaseEntry*& entry) const {
  // A newer library uses the older protocol unless newer features were negotiated.
  if (hello.version < kOldestVersion) return GPUROTA_REFUSED_VERSION;
  const std::string_view token(hello.token, sizeof hello.token);
  entry = find_told_lease(parts_.tables, LeaseId{hello.lease}, token);
  if (!entry || entry->lease.exclusive()) return GPUROTA_REFUSED_LEASE;
  // A library without this feature cannot move memory, so its process is charged by the driver's
  // figures.
  if (entry->lease.swap() && (hello.features & GPUROTA_FEATURE_SWAP) == 0) {
    return GPUROTA_REFUSED_VERSION;
  }
  // Processes of the owner need no token, as the kernel reports their user. Processes of pods need
  // a token, as root in one pod is root in all.
  const bool own = session.peer.uid == entry->lease.uid && entry->lease.kind != LeaseKind::kPod;
  const bool may = own || has_token(*entry, token);
  return may ? GPUROTA_OK : GPUROTA_REFUSED_LEASE;
}

// A tenant that connects again does not count as another one.
Result<TenantPlace> TenantAdmission::place_for(const TenantSession& session,
                                               const gpurota_msg_hello& hello,
                                               const LeaseEntry& entry) {
  const Lease& lease = entry.lease;
  const ports::ProcessId& process = session.peer.process;
  const auto back = [&] { return comes_back(lease, hello, process); };
  // Others may have the room of the lease.
  const bool is_new =
      std::find(entry.parked.begin(), entry.parked.end(), process) == entry.parked.end();
  if (lease.park != ParkState::kNone && is_new && !back()) {
    return fail(Code::kLimit, fmt::format("{0} is parked, or on its way back: start the program "
                                          "after 'gpurota unpark {0}'",
                                          to_string(lease.id)));
  }
  if (crowded(lease.id, process) && !back()) {
    return fail(Code::kLimit, fmt::format("the lease has {} already, as many as the site allows "
                                          "(max_tenants_per_lease)",
                                          parts_.config.max_tenants_per_lease));
  }
  TenantPlace place;
  auto tenant = parts_.budgets.take(lease.uid, Budget::kTenants);
  if (!tenant && !back()) return tl::unexpected(std::move(tenant).error());
  place.tenant = tenant ? std::move(*tenant) : parts_.budgets.charge(lease.uid, Budget::kTenants);
  GPUROTA_ASSIGN_OR_RETURN(place.event, parts_.budgets.take(lease.uid, Budget::kDescriptors));
  return place;
}

// A process that has memory under the lease is admitted, whatever the number of tenants. Without
// admission, the memory would be counted all the same, but could not be recalled. Before the first
// sample, the process's own report is believed.
bool TenantAdmission::comes_back(const Lease& lease, const gpurota_msg_hello& hello,
                                 const ports::ProcessId& process) const {
  bool known = false;
  for (const auto& [id, tenant] : parts_.table.of_lease(lease.id)) {
    if (tenant->process.id != process || tenant->dead) continue;
    if (tenant->session) return false;
    known = true;
  }
  return known || lists(parts_.gpus, lease, process.pid).value_or(hello.held_count != 0);
}

// Dead tenants whose memory is not back yet have a bound of their own, and do not count against the
// bound of living tenants. An earlier connection of the newcomer does not count either.
bool TenantAdmission::crowded(LeaseId lease, const ports::ProcessId& newcomer) const {
  int alive = 0, dead = 0;
  for (const auto& [id, tenant] : parts_.table.of_lease(lease)) {
    if (!tenant->process.alive()) {
      ++dead;
    } else if (tenant->session || tenant->process.id != newcomer) {
      ++alive;
    }
  }
  return alive >= parts_.config.max_tenants_per_lease || dead >= kMostDead;
}

}  // namespace gpurota::daemon
