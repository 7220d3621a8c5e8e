// Requests a lease, waits for it in the queue, and prints the state. One thread.
//
// Ctrl-C is not handled: it ends this process, and the daemon removes the request from the queue at
// once. If the daemon goes down, this waits for it; the request keeps its place by its ticket.
#pragma once

#include "cli/args/args.h"
#include "cli/commands.h"
#include "proto/methods.h"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct Wanted {
  const LeaseWishes& wishes;
  const char* kind;                  // "run", "reservation"
  std::vector<std::string> command;  // shortened to what the daemon accepts; may be empty
  bool take_over = false;
  bool quiet = false;               // print nothing while waiting
  std::optional<LeaseId> inside{};  // the lease of the calling shell
};

// Why there is no lease. kNoGpu: the request may not wait, or has waited for as long as it may.
struct NoLease {
  Error error;
  bool cancelled = false;  // another user removed the request from the queue
};

// Returns the lease. `connection` is then the connection on which the lease came: a new one if the
// daemon was restarted meanwhile.
tl::expected<proto::Acquire::Reply, NoLease> obtain(const client::Location& location,
                                                    client::Connection& connection,
                                                    const Wanted& wanted);

// Prints the reason; returns the exit status, which is `otherwise` if there is no better one.
int shown_without_lease(const NoLease& why, int otherwise);

// Sets the warning of `call`. A warning of zero seconds removes the warning, and has no signal.
template <class Call>
void set_warning(Call& call, const EndWarning& warning) {
  call.warn_seconds = static_cast<int>(warning.before.count());
  if (warning.is_set()) call.warn_signal = std::string(warning_signal_name(warning.signal));
}

// The request for these wishes, as sent to the daemon.
proto::LeaseRequest lease_request(const LeaseWishes& wishes, const char* kind);

// The call that asks whether obtain() would be refused even if it waited forever.
proto::CheckRequest check_request(const LeaseWishes& wishes);

// As much of a note as the protocol accepts, cut between characters, with a message if cut; `what`:
// "the note".
std::optional<std::string> sendable(const std::optional<std::string>& given, const char* what,
                                    std::size_t most);

// "You hold L10 on GPU 0: gpurota run --lease L10 -- …", if the request may be waiting for a
// reservation of the same user; else empty.
std::string own_reservation_text(const proto::Request& request,
                                 const std::vector<proto::Lease>& leases);

// "R7, position 2: waits for GPU 1: bob's reservation (L5) ends at 15:40"; with the remedy if
// `remedy`.
std::string waiting_text(const proto::Request& request, WallTime now, bool remedy);

}  // namespace gpurota::cli
