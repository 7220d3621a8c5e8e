// The texts of --help of turns and set: part of help.cpp.
#include "cli/help.h"

namespace gpurota::cli {
namespace {

constexpr std::string_view kTurns = R"(gpurota turns: who has the turn, who waits, and what moved

usage: gpurota turns [--gpu-ids ID,…] [--json]

Leases made with --swap share a GPU in turns when they do not fit together: one at a time is wholly
in GPU memory and runs, and memory of the others moves to host memory to make room. RESIDENT is in
GPU memory, OUT in host memory; WIRED cannot be moved (contexts, modules). QUANTUM has a star if it
was set for the lease itself. While everything fits, all leases run. The last lines are the last
switches: what moved in and out, and how long that took.
)";

constexpr std::string_view kSet =
    R"(gpurota set: the capacity of a GPU, and how its leases take turns

usage: gpurota set --gpu-ids ID,… [--capacity SIZE] [--quantum TIME|auto] [--turns auto|on|off]
                   [--reset]

  gpurota set --gpu-ids 0 --capacity 24G    all leases together may use 24 GiB of it
  gpurota set --gpu-ids 0 --quantum 5s      a turn lasts 5 s while others wait
  gpurota set --gpu-ids 0,1 --turns off     no turns: memory that would need them is refused
  gpurota set --gpu-ids 0 --reset           return to the configuration

  --capacity SIZE       8G, 50%
  --quantum TIME        10ms to 1h; auto: chosen so that moving memory takes 5 % of the time
  --turns MODE          auto: take turns while the swap leases do not fit together; on: always;
                        off: never

For administrators. A setting takes effect at once, overrides gpurota.toml, and survives a restart
of the daemon. A setting that the current leases do not fit is refused, with the reason.
)";

}  // namespace

std::string_view turns_help_text(std::string_view topic) {
  if (topic == "turns") return kTurns;
  return topic == "set" ? kSet : std::string_view();
}

}  // namespace gpurota::cli
