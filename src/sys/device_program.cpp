#include "sys/device_program.h"

#include "base/fd.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

// Instructions as <linux/bpf.h> defines them. The target of a jump is resolved later: `next` and
// `finish` fill it in.
class Instructions {
 public:
  enum class End { kNext, kAllow, kRefuse };

  void load(int to, std::size_t offset_in_context) {
    add(BPF_LDX | BPF_MEM | BPF_W, to, BPF_REG_1, static_cast<int>(offset_in_context), 0);
  }
  void copy(int to, int from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void keep_bits(int of, unsigned mask) { alu(BPF_AND, of, mask); }
  void shift_right(int of, unsigned bits) { alu(BPF_RSH, of, bits); }
  // Jumps to `end` if `of` compared with `value` meets the condition: BPF_JEQ, BPF_JNE, BPF_JLT or
  // BPF_JGT (unsigned).
  void go(End end, int condition, int of, unsigned value) {
    jumps_.push_back({code_.size(), end});
    add(BPF_JMP32 | condition | BPF_K, of, 0, 0, value);
  }
  void go(End end) {
    jumps_.push_back({code_.size(), end});
    add(BPF_JMP | BPF_JA, 0, 0, 0, 0);
  }
  // The target of jumps to kNext.
  void next() { land(End::kNext); }

  std::vector<bpf_insn> finish() && {
    for (const auto& [end, answer] : {std::pair(End::kAllow, 1U), std::pair(End::kRefuse, 0U)}) {
      land(end);
      add(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, answer);
      add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    }
    return std::move(code_);
  }

 private:
  struct Jump {
    std::size_t from;
    End end;
  };

  void alu(int operation, int of, unsigned value) {
    add(BPF_ALU | operation | BPF_K, of, 0, 0, value);
  }
  void add(int code, int to, int from, int offset, unsigned value) {
    bpf_insn insn{};
    insn.code = static_cast<__u8>(code);
    insn.dst_reg = static_cast<__u8>(to) & 0xf;
    insn.src_reg = static_cast<__u8>(from) & 0xf;
    insn.off = static_cast<__s16>(offset);
    insn.imm = static_cast<__s32>(value);
    code_.push_back(insn);
  }
  void land(End end) {
    std::erase_if(jumps_, [&](const Jump& jump) {
      if (jump.end != end) return false;
      code_[jump.from].off = static_cast<__s16>(code_.size() - jump.from - 1);
      return true;
    });
  }

  std::vector<bpf_insn> code_;
  std::vector<Jump> jumps_;
};

int bpf(int command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

// Attributes that are all zero: the kernel requires the unused part to be zero.
bpf_attr no_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

template <class Pointer>
__u64 address_of(Pointer* pointer) {
  return reinterpret_cast<__u64>(pointer);
}

Result<Fd> load(const std::vector<bpf_insn>& code) {
  bpf_attr attributes = no_attributes();
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insn_cnt = static_cast<__u32>(code.size());
  attributes.insns = address_of(code.data());
  attributes.license = address_of("Apache-2.0");
  Fd program(bpf(BPF_PROG_LOAD, attributes));
  if (program) return program;
  if (errno == EPERM) {
    return fail(Code::kDenied,
                "the kernel takes no device program from gpurotad, which needs CAP_BPF and "
                "CAP_NET_ADMIN");
  }
  return fail(Code::kUnavailable,
              std::string("the kernel takes no device program: ") + std::strerror(errno), errno);
}

}  // namespace

std::vector<bpf_insn> device_program(const DeviceFences& fences) {
  using End = Instructions::End;
  Instructions program;
  // access_type: the upper half is the access requested, the lower half the kind of device.
  program.load(BPF_REG_2, offsetof(bpf_cgroup_dev_ctx, access_type));
  program.copy(BPF_REG_3, BPF_REG_2);
  program.keep_bits(BPF_REG_3, 0xffff);
  program.go(End::kAllow, BPF_JNE, BPF_REG_3, BPF_DEVCG_DEV_CHAR);
  program.shift_right(BPF_REG_2, 16);
  program.keep_bits(BPF_REG_2, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE);
  program.go(End::kAllow, BPF_JEQ, BPF_REG_2, 0);
  program.load(BPF_REG_4, offsetof(bpf_cgroup_dev_ctx, major));
  program.load(BPF_REG_5, offsetof(bpf_cgroup_dev_ctx, minor));
  for (const DeviceFence& fence : fences) {
    program.go(End::kNext, BPF_JNE, BPF_REG_4, fence.major);
    program.go(End::kNext, BPF_JLT, BPF_REG_5, fence.first);
    program.go(End::kNext, BPF_JGT, BPF_REG_5, fence.last);
    for (const unsigned minor : fence.open) program.go(End::kAllow, BPF_JEQ, BPF_REG_5, minor);
    program.go(End::kRefuse);
    program.next();
  }
  return std::move(program).finish();
}

Result<void> set_device_program(const std::string& cgroup, const DeviceFences& fences) {
  std::size_t devices = 0;
  for (const DeviceFence& fence : fences) devices += fence.open.size() + 4;
  if (devices > kMaxOpenDevices) {
    return fail(Code::kLimit, fmt::format("a device program for {} devices is too long", devices));
  }
  const Fd group(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!group && errno == ENOENT) return fail(Code::kGone, cgroup + " is gone");
  if (!group) return fail_errno("cannot open " + cgroup, errno);

  bpf_attr attributes = no_attributes();
  attributes.target_fd = static_cast<__u32>(group.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  if (fences.empty()) {
    if (bpf(BPF_PROG_DETACH, attributes) == 0 || errno == ENOENT || errno == EINVAL) return {};
    return fail_errno("cannot take the device program from " + cgroup, errno);
  }
  GPUROTA_ASSIGN_OR_RETURN(const Fd program, load(device_program(fences)));
  attributes.attach_bpf_fd = static_cast<__u32>(program.get());
  // Not BPF_F_ALLOW_MULTI: replacing a program would then need the old one, and a lease in a group
  // below another lease's group could open only the files that both have.
  attributes.attach_flags = BPF_F_ALLOW_OVERRIDE;
  if (bpf(BPF_PROG_ATTACH, attributes) == 0) return {};
  return fail(Code::kUnavailable,
              fmt::format("{} takes no device program: {}", cgroup, std::strerror(errno)), errno);
}

}  // namespace gpurota::sys
