// The text of `ps` and `doctor`. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// "podman web"; its short id, as `podman ps` shows it, where its name is not known.
std::string container_text(const proto::Container& container);

std::string ps_text(const proto::ListProcesses::Reply& reply, const Layout& layout);
std::string doctor_text(const std::vector<proto::Check>& checks, const Layout& layout);

// "0"; a MIG instance "0:1". A daemon that says no label is asked for the index.
std::string label_of(const proto::Gpu& gpu);
std::string label_of(const proto::LeaseGpu& gpu);

// "alice", "lab (carol)": the account, and who of those who share it.
std::string person_text(const std::string& user, const std::optional<std::string>& as_name);

// "8 GiB on GPU 0", "GPUs 0 and 1": what a lease has, for one line.
std::string lease_line(const proto::Lease& lease);
// For who asked for it; empty: the lease is not oversize.
std::string oversize_warning(const proto::Lease& lease);

}  // namespace gpurota::cli
