// gpurota release: chooses the leases, and reports the results.
#include "abi/env.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/queue/find_named.h"
#include "cli/queue/waiting.h"
#include "cli/text/ask_person.h"
#include "cli/text/done_text.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include <unistd.h>

namespace gpurota::cli {
namespace {

using Leases = std::vector<proto::Lease>;
using Chosen = tl::expected<std::vector<LeaseId>, UsageError>;

Leases own_of(const Leases& leases, bool reservations) {
  Leases own;
  for (const proto::Lease& lease : leases) {
    if (lease.uid != ::geteuid() || lease.state == proto::LeaseState::kEnding) continue;
    if (!reservations || lease.kind == proto::LeaseKind::kReservation) own.push_back(lease);
  }
  return own;
}

// Each lease with the command that ends it.
std::string lines_of(const Leases& leases) {
  std::string text;
  for (const proto::Lease& lease : leases) {
    text += fmt::format("\n  gpurota release {}   # {}", to_string(lease.lease_id),
                        recognizable(lease, ::geteuid()));
  }
  return text + "\n  gpurota release --all   # all your leases, also of running programs";
}

// Null: none.
const proto::Lease* find(const Leases& leases, LeaseId id) {
  const auto found = std::find_if(leases.begin(), leases.end(),
                                  [id](const proto::Lease& lease) { return lease.lease_id == id; });
  return found == leases.end() ? nullptr : &*found;
}

// The lease that this shell is in, or was in.
std::optional<LeaseId> lease_of_shell() {
  const char* const variable = std::getenv(GPUROTA_ENV_LEASE);
  if (variable == nullptr) return std::nullopt;
  const auto handle = lease_handle(variable);
  return handle && handle->name.empty() ? std::optional<LeaseId>(*handle) : std::nullopt;
}

Chosen ask_which(const Leases& reservations) {
  std::string question = fmt::format("you have {} reservations:", reservations.size());
  for (const proto::Lease& lease : reservations) {
    question += "\n  " + recognizable(lease, ::geteuid());
  }
  const std::string answer = ask_person(question + "\nend which one? Its id, or 'all' of these:");
  std::vector<LeaseId> ids;
  if (answer == "all") {
    for (const proto::Lease& lease : reservations) ids.push_back(lease.lease_id);
    return ids;
  }
  const auto handle = lease_handle(answer);
  const auto id = handle && !handle->name.empty()
                      ? find_named(reservations, handle->name, ::geteuid())
                      : Result<LeaseId>(handle);
  if (!id) return tl::unexpected(UsageError{"nothing is released", kExitFailed});
  return std::vector<LeaseId>{*id};
}

// The choice of a `release` without arguments: the only reservation, so that no other is lost by
// mistake.
Chosen choose(const Leases& leases) {
  const Leases reservations = own_of(leases, true);
  const auto here = lease_of_shell();
  if (here && find(reservations, *here) != nullptr) return std::vector<LeaseId>{*here};
  if (here && find(leases, *here) == nullptr) {
    return tl::unexpected(UsageError{
        fmt::format("nothing to release: {}, which this shell is under, has ended{}",
                    to_string(*here), reservations.empty() ? "" : lines_of(reservations)),
        kExitFailed});
  }
  if (reservations.size() == 1) return std::vector<LeaseId>{reservations.front().lease_id};
  if (reservations.size() > 1) {
    if (can_ask()) return ask_which(reservations);
    return tl::unexpected(UsageError{fmt::format("you have {} reservations: name the one to end{}",
                                                 reservations.size(), lines_of(reservations)),
                                     kExitUsage});
  }
  const Leases own = own_of(leases, false);
  if (own.empty()) {
    return tl::unexpected(UsageError{"nothing to release: you have no lease", kExitFailed});
  }
  return tl::unexpected(
      UsageError{"you have no reservation: name the lease to end" + lines_of(own), kExitUsage});
}

// Asks an administrator to confirm that the leases of all users are meant.
bool confirm_all(std::size_t leases) {
  if (::isatty(STDIN_FILENO) == 0) {
    complain(
        fmt::format("--all-users would end {} leases and their programs: give --yes too", leases));
    return false;
  }
  const std::string answer = ask_person(
      fmt::format("end all {} leases, of every user, and their programs? [y/N]", leases));
  return answer == "y" || answer == "Y";
}

std::string released_text(const std::vector<LeaseId>& ids, const Leases& leases) {
  std::string text;
  for (const LeaseId id : ids) {
    const proto::Lease* const lease = find(leases, id);
    text += text.empty() ? "released " : "\nreleased ";
    text += lease == nullptr ? to_string(id) : recognizable(*lease, ::geteuid());
  }
  return text;
}

std::vector<proto::Release> calls_for(const ReleaseOptions& options,
                                      const std::vector<LeaseId>& leases) {
  std::vector<proto::Release> calls;
  for (const LeaseId id : leases) calls.emplace_back().lease_id = id;
  if (!options.gpu_ids.empty()) calls.emplace_back().gpu_ids = options.gpu_ids;
  if (options.all) calls.emplace_back().all = true;
  if (options.all_users) calls.emplace_back().all_users = true;
  for (proto::Release& call : calls) {
    call.reason = sendable(options.reason, "the reason", proto::kMaxNoteBytes);
  }
  return calls;
}

}  // namespace

int release(const Context& context, const ReleaseOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto status = connection->call(proto::Status{});
  if (!status) return failed(status.error());
  if (options.all_users) {
    const auto info = connection->call(proto::GetInfo{});
    if (info && !info->administrator.value_or(true)) {
      complain("only administrators can end everybody's leases: --all ends yours");
      return kExitFailed;
    }
  }
  if (options.all_users && !options.yes && !confirm_all(status->leases.size())) return kExitFailed;
  std::vector<LeaseId> named(options.leases.begin(), options.leases.end());
  if (named.empty() && options.bookings.empty() && options.gpu_ids.empty() && !options.all &&
      !options.all_users) {
    const Chosen chosen = choose(status->leases);
    if (!chosen) {
      complain(chosen.error().message);
      return chosen.error().exit_code;
    }
    named = *chosen;
  }
  int code = kExitOk;
  if (!options.bookings.empty()) {
    code = cancel(context, CancelOptions{options.bookings, options.reason});
  }
  std::vector<LeaseId> released;
  for (const proto::Release& call : calls_for(options, named)) {
    const auto reply = connection->call(call);
    if (!reply) {
      code = failed(reply.error());
    } else if (reply->lease_ids.empty()) {
      complain("nothing to release: you have no such lease");
    }
    if (reply) released.insert(released.end(), reply->lease_ids.begin(), reply->lease_ids.end());
  }
  if (!released.empty()) (void)done(context, released_text(released, status->leases));
  return code;
}

}  // namespace gpurota::cli
