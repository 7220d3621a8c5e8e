"""close_group.py GROUP MAJOR: keeps processes in this control group, or below it, from opening
character devices of this major number, as systemd's DevicePolicy= on their slice would. The device
program applies in addition to those that container engines attach to groups below
(BPF_F_ALLOW_MULTI). Exits with 77 where the kernel accepts no such program from us."""
import ctypes
import os
import platform
import struct
import sys

SYS_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_LOAD, PROG_ATTACH = 5, 8
CGROUP_DEVICE_PROGRAM, CGROUP_DEVICE, ALLOW_MULTI = 15, 6, 2
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    attributes = attributes.ljust(128, b"\0")
    done = libc.syscall(SYS_BPF, command, attributes, len(attributes))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def instruction(code, to=0, source=0, offset=0, value=0):
    return struct.pack("<BBhi", code, source << 4 | to, offset, value)


def program(major):
    return b"".join([
        instruction(0x61, 2, 1, 4),              # r2 = context->major
        instruction(0x15, 2, 0, 2, major),       # if it is this major, refuse
        instruction(0xb7, 0, 0, 0, 1), instruction(0x95),
        instruction(0xb7, 0, 0, 0, 0), instruction(0x95)])


def main():
    code = ctypes.create_string_buffer(program(int(sys.argv[2])))
    name = ctypes.create_string_buffer(b"Apache-2.0")
    try:
        loaded = bpf(PROG_LOAD, struct.pack("<IIQQ", CGROUP_DEVICE_PROGRAM, (len(code) - 1) // 8,
                                            ctypes.addressof(code), ctypes.addressof(name)))
        group = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
        bpf(PROG_ATTACH, struct.pack("<IIII", group, loaded, CGROUP_DEVICE, ALLOW_MULTI))
    except OSError as error:
        print(f"no device program: {error}", file=sys.stderr)
        sys.exit(77)


main()
