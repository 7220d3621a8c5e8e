"""Users who wait with all the requests that each may have, for GPU 0.

    many_requests.py UID…
"""
import os
import sys
import time

from users import Doing
from wire import Control

MOST = 63  # and a lease: a user has 64 of both at a time
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
