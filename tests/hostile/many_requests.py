"""Users wait for GPU 0 with as many requests as each may have.

    many_requests.py UID…
"""
import os
import sys
import time

from users import Doing
from wire import Control

MOST = 63  # plus a lease: a user may have 64 of both together
waiting = []  # a request ends with its connection


def wait_with_all(connections=MOST):
    for _ in range(connections):
        connection = Control()
        connection.connect()
        reply = connection.call("Enqueue", ticket=os.urandom(8).hex(), request=dict(gpu_ids=["0"]))
        assert "error" not in reply, reply
        waiting.append(connection)
    return len(waiting)


users = [Doing(int(uid), wait_with_all) for uid in sys.argv[1:]]
for user in users:
    assert user.said == MOST, user.said
time.sleep(300)
