// Device programs of control groups (BPF_PROG_TYPE_CGROUP_DEVICE), which the kernel runs whenever a
// process of the group opens a device file.
//
// Needs control groups version 2, Linux 5.8, CAP_BPF and CAP_NET_ADMIN. Applies to root too. Files
// already open stay open. A program lives as long as its group, with or without gpurotad.
#pragma once

#include "base/result.h"
#include "core/device_fence.h"

#include <cstdint>
#include <string>
#include <vector>

struct bpf_insn;

namespace gpurota::sys {

// Keeps every jump of the program within the range of an instruction.
constexpr std::size_t kMaxOpenDevices = 1000;

// The program, which refuses only the opening of fenced devices. Making device files is always
// allowed.
std::vector<bpf_insn> device_program(const DeviceFences& fences);

// Replaces the program that we set before, in one step. A group below that has its own program uses
// only that one. Without fences the program is removed. kGone: there is no such group; kDenied: we
// lack a capability; kUnavailable: the kernel has no such programs, or a program that somebody else
// set on a group above forbids ours; kLimit: too many devices.
Result<void> set_device_program(const std::string& cgroup, const DeviceFences& fences);

}  // namespace gpurota::sys
