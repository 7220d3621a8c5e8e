"""subordinate.py UID COMMAND…: runs the command as user 200000, which is user 1 of a user namespace
that UID made, as rootless engines do for users of an image. Only for root."""
import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
uid, command = int(sys.argv[1]), sys.argv[2:]
made, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0:
        os._exit(77)
    os.write(made[1], b"x")
    os.read(mapped[0], 1)
    os.setresgid(1, 1, 1)
    os.setresuid(1, 1, 1)
    os.execvp(command[0], command)
os.close(made[1])
if os.read(made[0], 1) == b"x":
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w", encoding="ascii") as file:
            file.write(f"0 {uid} 1\n1 200000 100\n")
    os.write(mapped[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
