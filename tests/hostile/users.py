"""Who takes part: two users without accounts, and becoming one of them (as root)."""
import os

MALLORY, ALICE = 54001, 54002


def as_user(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
