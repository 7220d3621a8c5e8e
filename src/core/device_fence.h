// Which device files the processes of a control group can open, by number. Plain data;
// sys/device_program.h has the kernel enforce it.
#pragma once

#include <set>
#include <vector>

namespace gpurota {

// Of the character devices from `major`:`first` to `major`:`last` only those with a minor number in
// `open` can be opened. Other devices are not restricted.
struct DeviceFence {
  unsigned major = 0;
  unsigned first = 0;
  unsigned last = 0;
  std::set<unsigned> open;
  bool operator==(const DeviceFence&) const = default;
};
using DeviceFences = std::vector<DeviceFence>;

struct DeviceNumber {
  unsigned major = 0;
  unsigned minor = 0;
  bool operator==(const DeviceNumber&) const = default;
};

}  // namespace gpurota
