// Asks for a lease and waits for it in the queue, saying where it stands. One thread.
//
// Ctrl-C is left as it is: it ends this process, and the daemon takes the request out of the queue
// at once. A daemon that goes away is waited for; the request keeps its place by its ticket.
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
  std::vector<std::string> command;  // as it may be sent; may be empty
  bool take_over = false;
  bool quiet = false;               // says nothing of the waiting
  std::optional<LeaseId> inside{};  // of the shell in which it is asked for
};

// Why there is no lease. kNoGpu if it may not wait, or has waited for as long as it may.
struct NoLease {
  Error error;
  bool cancelled = false;  // somebody took the request out of the queue
};

// The lease. The connection on which it came is `connection` then: another one than before, if the
// daemon was restarted meanwhile.
tl::expected<proto::Acquire::Reply, NoLease> obtain(const client::Location& location,
                                                    client::Connection& connection,
                                                    const Wanted& wanted);

// Shows why; the exit status, which is `otherwise` where there is no better one.
int shown_without_lease(const NoLease& why, int otherwise);

// Zero seconds, which have no signal, take a warning back.
template <class Call>
void set_warning(Call& call, const EndWarning& warning) {
  call.warn_seconds = static_cast<int>(warning.before.count());
  if (warning.is_set()) call.warn_signal = std::string(warning_signal_name(warning.signal));
}

// The request for these wishes, as it is sent.
proto::LeaseRequest lease_request(const LeaseWishes& wishes, const char* kind);

// Asks what `obtain` would be refused with whatever it waits for.
proto::CheckRequest check_request(const LeaseWishes& wishes);

// As much of a note as the protocol takes, cut between characters, which it says; `what`: "the
// note".
std::optional<std::string> sendable(const std::optional<std::string>& given, const char* what,
                                    std::size_t most);

// "You hold L10 on GPU 0: gpurota run --lease L10 -- …", if a reservation of the one who asks may
// be what the request waits for; else empty.
std::string own_reservation_text(const proto::Request& request,
                                 const std::vector<proto::Lease>& leases);

// "R7, position 2: waits for GPU 1: bob's reservation (L5) ends at 15:40"; and what it can do now,
// if that is told.
std::string waiting_text(const proto::Request& request, WallTime now, bool remedy);

}  // namespace gpurota::cli
