"""Takes a lease for a pod, as gpurota-dra does: pod_lease.py SOCKET ALLOCATION UID GPU MIB [SHARE]

SHARE: "slice" (the default) or "swap". Exits with the daemon's answer if the lease is refused.
"""
import hashlib
import json
import socket
import sys


def main(path, allocation, uid, gpu, mib, share="slice"):
    request = {"gpu_ids": [gpu], "memory": {"bytes": int(mib) << 20}, "swap": share == "swap"}
    token = hashlib.md5(allocation.encode()).hexdigest()
    call = {"method": "dev.gpurota.AcquireForPod",
            "parameters": {"allocation": allocation, "token": token, "request": request,
                           "pod_uid": uid}}
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(path)
        daemon.sendall(json.dumps(call).encode() + b"\0")
        answer = b""
        while not answer.endswith(b"\0"):
            part = daemon.recv(65536)
            if not part:
                return "gpurotad has hung up"
            answer += part
    return answer[:-1].decode() if "error" in json.loads(answer[:-1]) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
