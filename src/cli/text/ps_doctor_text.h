// The text of `ps` and `doctor`. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// "podman web"; if the name is unknown the short id, as in `podman ps`.
std::string container_text(const proto::Container& container);

std::string ps_text(const proto::ListProcesses::Reply& reply, const Layout& layout);
std::string doctor_text(const std::vector<proto::Check>& checks, const Layout& layout);

// "0"; for a MIG instance "0:1". For a daemon that sends no label: the index.
std::string label_of(const proto::Gpu& gpu);
std::string label_of(const proto::LeaseGpu& gpu);

// "alice", "lab (carol)": the account, and the person if it is shared.
std::string person_text(const std::string& user, const std::optional<std::string>& as_name);

// "8 GiB on GPU 0", "GPUs 0 and 1": what a lease has, as part of a line.
std::string lease_line(const proto::Lease& lease);
// Warns the user who requested an oversize lease; empty: the lease is not oversize.
std::string oversize_warning(const proto::Lease& lease);

}  // namespace gpurota::cli
