"""A daemon for tests: it listens in a folder of the test, and the test sets its answers."""

import json
import os
import shutil
import socket
import tempfile
import threading
import unittest
from typing import Any, Callable, Dict, List, Optional, Union

# The answer to a call: parameters of an answer, raw bytes, or None to hang up. An answer with
# "continues" is a message as a whole.
Answer = Union[Dict[str, Any], bytes, None]
Handler = Callable[[str, Dict[str, Any]], Optional[List[Answer]]]

LEASE: Dict[str, Any] = {
    "lease_id": "L1", "kind": "run", "share": "slice", "state": "active", "uid": os.getuid(),
    "user": "me",
    "since": "2026-01-02T03:04:05Z", "processes": 0, "gpus": [],
}
REQUEST: Dict[str, Any] = {
    "request_id": "R1", "position": 1, "kind": "run", "uid": os.getuid(), "user": "me",
    "since": "2026-01-02T03:04:05Z",
    "gpus": 1, "free": 0, "planned": [], "reason": "as an older module shows it",
    "wait_reason": {"code": "leased_open_ended",
                    "text": "waits for GPU 1: bob's program (L3) has no time limit",
                    "remedy": "starts now with --swap"},
}
STATUS: Dict[str, Any] = {"gpus": [], "leases": [], "findings": []}


def error(name: str, **parameters: Any) -> bytes:
    return json.dumps({"error": name, "parameters": parameters}).encode() + b"\0"


def more(**parameters: Any) -> bytes:
    """An answer that is followed by another."""
    return json.dumps({"parameters": parameters, "continues": True}).encode() + b"\0"


class FakeDaemon:
    """`handler` gets the method's name (without the interface) and the parameters. If the handler
    returns None, this class answers itself."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.calls: List[Dict[str, Any]] = []
        self.handler: Handler = lambda method, parameters: None
        self.hung_up = threading.Event()  # set when a client has closed its connection
        self._listener: Optional[socket.socket] = None
        self._peers: List[socket.socket] = []
        self.start()

    def start(self) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for peer in self._peers:
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def methods(self) -> List[str]:
        return [each["method"] for each in self.calls]

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            self._peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        buffer = b""
        with peer:
            while True:
                try:
                    data = peer.recv(65536)
                except OSError:
                    data = b""
                if not data:
                    self.hung_up.set()
                    return
                buffer += data
                while b"\0" in buffer:
                    message, buffer = buffer.split(b"\0", 1)
                    if not self._answer(peer, json.loads(message)):
                        return

    def _answer(self, peer: socket.socket, call: Dict[str, Any]) -> bool:
        method, parameters = call["method"].replace("dev.gpurota.", ""), call["parameters"]
        self.calls.append({"method": method, "parameters": parameters,
                           "more": call.get("more", False)})
        answers = self.handler(method, parameters)
        for each in self._own(method) if answers is None else answers:
            if each is None:
                return False
            peer.sendall(each if isinstance(each, bytes)
                         else json.dumps({"parameters": each}).encode() + b"\0")
        return True

    def _own(self, method: str) -> List[Answer]:
        if method in ("Enqueue", "Acquire"):
            return [{"lease": LEASE, "environment": [{"name": "GPUROTA_LEASE", "value": "L1"}],
                     "preload": None}]
        if method == "Hold":
            return [{"lease": LEASE, "ended": "released", "reason": "it was released by me"}]
        return [{"Status": STATUS, "Release": {"lease_ids": ["L1"]},
                 "Start": {"cgroup": None}}.get(method, {})]


class TestCase(unittest.TestCase):
    """A test with a fake daemon that the module finds."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="gpurota-test.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.daemon = FakeDaemon(os.path.join(self.folder, "control.sock"))
        self.addCleanup(self.daemon.stop)
        self.set_variable("GPUROTA_RUNTIME_DIR", self.folder)
        self.set_variable("GPUROTA_LEASE", None)

    def set_variable(self, name: str, value: Optional[str]) -> None:
        before = os.environ.get(name)

        def put(value: Optional[str]) -> None:
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

        self.addCleanup(put, before)
        put(value)

    def answer(self, **answers: List[Answer]) -> None:
        """Sets the answers to every call of these methods."""
        self.daemon.handler = lambda method, _: answers.get(method)
