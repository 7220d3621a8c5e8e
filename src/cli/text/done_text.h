// The line that a command prints when it has changed something. Pure.
#pragma once

#include "cli/args/args.h"
#include "core/time.h"
#include "proto/methods.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::cli {

// "GPU 0", "GPU 0,1".
std::string gpus_text(const proto::Lease& lease);
std::string gpus_text(const std::vector<std::string>& ids);

// "got GPU 0,1 as L6 after 45 s".
std::string got_text(const proto::Lease& lease, std::optional<std::chrono::seconds> waited);

// `L10 (GPU 0, "for the demo")`, so that the owner recognizes the lease; for another user's lease
// it names the owner. `reader`: the uid of the user who reads it.
std::string recognizable(const proto::Lease& lease, uid_t reader);

// "L10 on GPU 0 (8 GiB), until 18:40".
std::string updated_text(const proto::Lease& lease, WallTime now);
// A warning that an update has set the limit below what the lease holds, and how to return to the
// limit in `before`. Empty: the limit suffices.
std::string held_beyond_text(const proto::Lease& lease, const proto::Lease& before);
std::string set_text(const SetOptions& options);
// "stopped job web": `what` is job or filler.
std::string controlled_text(std::string_view what, std::string_view action, std::string_view name);

}  // namespace gpurota::cli
