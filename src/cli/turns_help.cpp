// The texts of --help of turns and set: part of help.cpp.
#include "cli/help.h"

namespace gpurota::cli {
namespace {

constexpr std::string_view kTurns = R"(gpurota turns: whose turn it is, who waits, and what it costs

usage: gpurota turns [--gpu-ids ID,…] [--json]

Leases made with --swap share a GPU in turns when they do not fit together: one at a time is wholly
in GPU memory and runs, and what it needs of the others' is moved to host memory. RESIDENT is in GPU
memory, OUT in host memory, WIRED cannot be moved (contexts, modules). QUANTUM has a star where it
was set for the lease itself. While all fits, all run. The last lines are the last switches: what
moved in and out, and how long that took.
)";

constexpr std::string_view kSet =
    R"(gpurota set: what leases may have of a GPU, and how turns are taken there

usage: gpurota set --gpu-ids ID,… [--capacity SIZE] [--quantum TIME|auto] [--turns auto|on|off]
                   [--reset]

  gpurota set --gpu-ids 0 --capacity 24G    leases of all kinds together may have so much of it
  gpurota set --gpu-ids 0 --quantum 5s      a turn lasts so long while somebody waits
  gpurota set --gpu-ids 0,1 --turns off     never: memory that would need turns is refused
  gpurota set --gpu-ids 0 --reset           as the configuration says

  --capacity SIZE       8G, 50%
  --quantum TIME        10ms to 1h; auto: so long that moving takes 5 % of the time
  --turns MODE          auto: while the swap leases there do not fit together; on: also when they do

For administrators. It holds at once, before what gpurota.toml says, and survives a restart of the
daemon. What does not fit the leases that are there is refused, with the reason.
)";

}  // namespace

std::string_view turns_help_text(std::string_view topic) {
  if (topic == "turns") return kTurns;
  return topic == "set" ? kSet : std::string_view();
}

}  // namespace gpurota::cli
