// The default PATH of commands: what a login sets. The keeper starts jobs and fillers with it, and
// `gpurota job add` checks with it that a command can be found.
#pragma once

namespace gpurota {

inline constexpr const char* kLoginPath = "/usr/local/bin:/usr/bin:/bin";

}  // namespace gpurota
