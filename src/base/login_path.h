// Where commands are looked for if nobody says otherwise: what a login gives. The keeper starts
// jobs and fillers with it, and `gpurota job add` checks with it that their command can be found.
#pragma once

namespace gpurota {

inline constexpr const char* kLoginPath = "/usr/local/bin:/usr/bin:/bin";

}  // namespace gpurota
