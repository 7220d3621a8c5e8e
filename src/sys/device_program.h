// Device programs of control groups (BPF_PROG_TYPE_CGROUP_DEVICE): the kernel asks them whenever a
// process of the group opens a device file.
//
// Needs version 2 of control groups, Linux 5.8, CAP_BPF and CAP_NET_ADMIN. Root is refused, too. A
// file that is open stays open. A program lives as long as its group does, with or without us.
#pragma once

#include "base/result.h"
#include "core/device_fence.h"

#include <cstdint>
#include <string>
#include <vector>

struct bpf_insn;

namespace gpurota::sys {

// So that no jump of the program is longer than an instruction can say.
constexpr std::size_t kMaxOpenDevices = 1000;

// The program: it refuses to open what a fence is around, and nothing else. Making device files is
// not its business.
std::vector<bpf_insn> device_program(const DeviceFences& fences);

// In place of the one which we set before, in one step; groups below that have one of their own
// have that one alone. Without fences there is none afterwards. kGone: there is no such group;
// kDenied: we lack a capability; kUnavailable: the kernel has no such programs, or somebody else's
// program in a group above forbids ours; kLimit: too many devices.
Result<void> set_device_program(const std::string& cgroup, const DeviceFences& fences);

}  // namespace gpurota::sys
