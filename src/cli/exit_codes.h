// The exit statuses of gpurota. The statuses of `run` itself do not overlap with the usual exit
// codes of its command.
#pragma once

namespace gpurota::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;           // a command other than run
inline constexpr int kExitUsage = 2;            // a word of the command line is wrong or missing
inline constexpr int kExitNoGpu = 75;           // nothing free that fits now: try again later
inline constexpr int kExitCancelled = 122;      // run, reserve: somebody cancelled the request
inline constexpr int kExitLeaseLost = 123;      // run: the lease ended before the command did
inline constexpr int kExitTimedOut = 124;       // run: its --timeout is over, as for timeout(1)
inline constexpr int kExitRunFailed = 125;      // run: gpurota's own failure
inline constexpr int kExitCannotExecute = 126;  // run: cannot execute the command, as in a shell
inline constexpr int kExitNotFound = 127;       // run: the command is not found, as in a shell

}  // namespace gpurota::cli
