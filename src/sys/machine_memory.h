// The memory of the machine, as the kernel reports it. Any thread; reads /proc/meminfo, which never
// blocks.
#pragma once

#include "base/bytes.h"

#include <optional>
#include <string_view>

namespace gpurota::sys {

struct MachineMemory {
  Bytes total;
  Bytes available;  // for programs started now, without swapping
  bool operator==(const MachineMemory&) const = default;
};

// From the text of /proc/meminfo; nullopt if a figure is missing.
std::optional<MachineMemory> parse_meminfo(std::string_view text);
std::optional<MachineMemory> read_machine_memory();

}  // namespace gpurota::sys
