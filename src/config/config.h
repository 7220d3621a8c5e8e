// What the site decides: gpurota.toml as plain data. Every field has the default that holds without a
// file, so that gpurotad runs without one.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota::config {

enum class Privacy { kOwner, kOpen };

struct Config {
  // Who may connect. Empty: everybody on the machine (the daemon of root), or only the daemon's own
  // user (a daemon of anybody else).
  std::string group;
  // kOwner: others see user, GPU, share, memory and times; kOpen: command, pid and note too.
  Privacy privacy = Privacy::kOwner;
  // Use without a lease below this is not worth leaving a GPU out for (a desktop, a monitor).
  Bytes unreserved_threshold = gib(1);
  // Between two looks at a GPU that has leases. A look costs about 20 µs of driver time (measured).
  std::chrono::milliseconds watch_period{250};
  // From SIGTERM to SIGKILL when a lease ends with processes left.
  std::chrono::milliseconds grace{5000};
  // After a restart: how long processes of known leases have to reconnect before others are granted
  // more.
  std::chrono::milliseconds reconnect_grace{3000};
  int max_leases_per_user = 64;
  int max_tenants_per_lease = 1024;
  int max_connections_per_user = 256;

  bool operator==(const Config&) const = default;
};

// The text of a gpurota.toml. `file` names it in errors: "gpurota.toml:12: watch_period: …". Unknown
// keys are errors: a misspelt limit must not silently not hold.
Result<Config> parse(std::string_view text, const std::string& file);

// Reads and parses; a file that does not exist gives the defaults unless `required`.
Result<Config> load(const std::string& path, bool required);

}  // namespace gpurota::config
