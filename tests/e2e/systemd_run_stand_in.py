#!/usr/bin/env python3
"""Stands in for systemd-run and systemd in tests: starts the command after `--` without a parent,
waits until it reports READY=1, and ends. Writes its arguments to $STAND_IN_LOG, and waits for
$STAND_IN_GATE first."""

import os
import socket
import subprocess
import sys
import tempfile
import time

words = sys.argv[1:]
behind = words.index("--")
with open(os.environ["STAND_IN_LOG"], "a", encoding="utf-8") as log:
    log.write(" ".join(words) + "\n")
if os.environ.get("STAND_IN_ERROR"):
    sys.exit(os.environ["STAND_IN_ERROR"])
gate = os.environ.get("STAND_IN_GATE")
while gate and not os.path.exists(gate):
    time.sleep(0.01)
with tempfile.TemporaryDirectory() as place:
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.bind(place + "/notify")
    ready.settimeout(20)
    nothing = subprocess.DEVNULL
    subprocess.Popen(words[behind + 1:], env={"NOTIFY_SOCKET": place + "/notify"}, stdin=nothing,
                     stdout=nothing, stderr=nothing, start_new_session=True, close_fds=True)
    sys.exit(0 if ready.recv(100) == b"READY=1" else "it did not say that it is ready")
