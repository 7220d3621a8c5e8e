// The texts of --help of what has to do with waiting and reserving: part of help.cpp.
#include "cli/help.h"

#include <array>
#include <utility>

namespace gpurota::cli {
namespace {

constexpr std::string_view kReserve =
    R"help(gpurota reserve: reserve GPUs for some time, without running anything yet

usage: gpurota reserve [OPTION…]

  gpurota reserve --gpus 2 --for 4h --note "demo"
  eval "$(gpurota reserve)"           one GPU for 30 minutes, for the programs of this shell
  gpurota run --lease L5 -- ./a.out   run a command under it, as often as you like

  -g, --gpus N          how many GPUs (1)
  -i, --gpu-ids ID,…    which GPUs
  -m, --memory SIZE     a slice of each GPU instead of the whole; --soft-limit SIZE as for run
      --swap            in turns with others, as for run; --priority, --quantum, --oversize too
      --for TIME        how long (30m): 45m, 2h, 1d, 1h30m
      --note TEXT       shown to you and administrators
      --as NAME         who you are, where several people share an account: shown beside the user
  -f, --force           take over GPUs that your own processes use already
  -w, --wait TIME       wait at most this long; --nonblock does not wait at all
  -s, --short           print only the ids of the GPUs: 0,2

Prints the variables to export. A reservation ends when its time is over, or with 'gpurota release'.
'gpurota update L5 --for 2h' makes it end two hours from now, unless somebody waits for its GPUs. If
programs still hold memory when its time is over, it is shown as 'expired', and they continue until
somebody needs the GPUs (or as the site's expired_reservation says).

exit status: 0, or 1 if it failed, or
   75   no GPU that fits was free (--nonblock), or not in time (--wait)
)help";

constexpr std::string_view kQueue = R"(gpurota queue: waiting requests, in order

usage: gpurota queue [--json]

First come, first served, all or nothing. GPUs that the first requests need are kept for them as
they become free; a later request gets them only if an enforced end (--timeout, --for) returns them
in time. EXPECTED is the latest start as things stand; '?' means that it is not known.
)";

constexpr std::string_view kCancel = R"(gpurota cancel: take a request out of the queue

usage: gpurota cancel REQUEST…

  gpurota cancel R7

The 'gpurota run' or 'gpurota reserve' that waits for it ends; Ctrl-C there does the same.
Administrators can cancel anybody's request.
)";

constexpr std::string_view kExplain =
    R"(gpurota explain: why a request waits, and when and how a lease ends

usage: gpurota explain [REQUEST|LEASE]

  gpurota explain        all your requests and leases
  gpurota explain R7     this request
  gpurota explain L12    this lease; for a swap lease also who has the turn and where its memory is
)";

constexpr std::string_view kDrain =
    R"(gpurota drain, undrain: take a GPU out of service, and put it back

usage: gpurota drain GPU… [--reason TEXT]
       gpurota undrain GPU…

  gpurota drain 3 --reason "new fan on Friday"

No new lease gets the GPU; current leases continue until they end. For administrators. A drained GPU
stays drained after a restart of the daemon.
)";

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTopics = {{
    {"reserve", kReserve},
    {"queue", kQueue},
    {"cancel", kCancel},
    {"explain", kExplain},
    {"drain", kDrain},
    {"undrain", kDrain},
}};

}  // namespace

std::string_view queue_help_text(std::string_view topic) {
  for (const auto& [name, text] : kTopics) {
    if (name == topic) return text;
  }
  return {};
}

}  // namespace gpurota::cli
