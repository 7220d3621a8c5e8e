"""Sends a daemon the messages of libgpurota (src/abi/wire.h) on tenant.sock, and those of a client
(JSON that ends with a NUL) on control.sock."""
import array
import json
import os
import socket
import struct

MAGIC = 0x61746f72
HELLO, AUTOMATIC, PROCESSES = 1, 10, 20
PATIENCE = 20


def runtime_dir():
    return os.environ["GPUROTA_RUNTIME_DIR"]


class Tenant:
    """A connection to tenant.sock. connect() is a step of its own, so that another process can
    connect the same socket."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)

    def connect(self):
        self.socket.connect(runtime_dir() + "/tenant.sock")

    def ask(self, kind, body):
        """The answer and its descriptors; None if the daemon has closed the connection."""
        try:
            self.socket.send(struct.pack("<HHI", kind, 0, 7) + body)
            answer, extra, _, _ = self.socket.recvmsg(1024, socket.CMSG_SPACE(16 * 4))
        except (ConnectionError, BrokenPipeError):
            return None
        descriptors = array.array("i")
        for level, what, data in extra:
            if (level, what) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(data[:len(data) // 4 * 4])
        return (answer, list(descriptors)) if answer else None

    def hello(self, lease, token=""):
        """The status of the WELCOME (0: admitted); None: closed."""
        body = struct.pack("<IIQQ", MAGIC, 1, 0, lease) + token.encode().ljust(32, b"\0")[:32]
        answer = self.ask(HELLO, (body + struct.pack("<II", 0, 0)).ljust(1016, b"\0"))
        return struct.unpack_from("<I", answer[0], 12)[0] if answer else None

    def automatic(self):
        """(status, token) of the LEASE; None: closed."""
        answer = self.ask(AUTOMATIC, struct.pack("<IIQ", MAGIC, 1, 0))
        if answer is None:
            return None
        return struct.unpack_from("<I", answer[0], 12)[0], answer[0][32:64].rstrip(b"\0").decode()


def processes_question(pids, sequence=5):
    """A whole message that asks which of these processes belong to the asker's lease."""
    return struct.pack(f"<HHIII{len(pids)}i", PROCESSES, 0, sequence, len(pids), 0,
                       *pids).ljust(256, b"\0")


class Control:
    """A connection to control.sock."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.pending = b""

    def connect(self):
        self.socket.connect(runtime_dir() + "/control.sock")

    def call(self, method, **parameters):
        """The reply or the error, as the daemon worded it; None: closed."""
        try:
            self.socket.sendall(json.dumps({"method": "dev.gpurota." + method,
                                            "parameters": parameters}).encode() + b"\0")
        except (ConnectionError, BrokenPipeError):
            pass  # the daemon has hung up, and may have sent the reason before
        return self.next_message()

    def next_message(self):
        """The daemon's next message; None: closed."""
        try:
            while b"\0" not in self.pending:
                more = self.socket.recv(1 << 16)
                if not more:
                    return None
                self.pending += more
        except (ConnectionError, BrokenPipeError):
            return None
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def ask_for_stream(self, method, **parameters):
        """Makes a call, and reads none of its answers."""
        call = {"method": "dev.gpurota." + method, "parameters": parameters, "more": True}
        self.socket.sendall(json.dumps(call).encode() + b"\0")
