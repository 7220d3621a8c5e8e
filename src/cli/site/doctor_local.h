// The checks of `gpurota doctor` that need no daemon: of this shell, the programs that the user may
// inspect, and the path to the daemon. Pure, but for read_stale_programs(). Called by doctor.cpp.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "config/loaded.h"
#include "proto/codec.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::cli {

// Variables that `gpurota run` sets for its command; empty: not set.
struct ShellEnvironment {
  std::string lease;    // GPUROTA_LEASE
  std::string token;    // GPUROTA_TOKEN: the lease has a limit, which the library enforces
  std::string preload;  // LD_PRELOAD
};
// `library`: the path of libgpurota.so, if it is known.
std::vector<proto::Check> check_shell(const ShellEnvironment& environment,
                                      const std::optional<std::string>& library);

// `owner`: of the socket file. `daemon`: the user that gpurotad runs as, if it answers.
std::optional<proto::Check> check_socket_owner(const std::string& socket, uid_t owner,
                                               std::optional<uid_t> daemon, uid_t own);

// The effect of the configuration files when gpurotad next starts, or reads them again. `group`:
// whether the machine has the group that the files name. `changes`: how many settings differ from
// those in effect; nothing if no daemon could say.
proto::Check check_next_start(const config::Loaded& loaded, const std::string& file, bool group,
                              std::optional<std::size_t> changes);

// `limit`: how much memory a process of this user may lock (ulimit -l); nothing: no limit. A low
// limit matters only to users who register memory with a network adapter.
proto::Check check_locked_memory(std::optional<Bytes> limit, bool has_rdma);

// In /proc/PID/maps: the mapped libgpurota.so that is no longer the file at its path.
std::optional<std::string> parse_stale_library(std::string_view maps);

// The programs that still map such a library. Nothing: not known within `patience`, because reading
// /proc/PID/maps of some process can block, or no thread could be started.
std::optional<std::vector<pid_t>> read_stale_programs(std::chrono::milliseconds patience);
std::optional<proto::Check> check_stale_programs(const std::optional<std::vector<pid_t>>& programs);

}  // namespace gpurota::cli
