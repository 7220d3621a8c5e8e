"""What a claim costs gpurota-dra: `tests/k8s/run.sh bench/dra_claims.py BUILD` (a build with its
stage).

500 claims of 64 MiB come and go on a node with two simulated GPUs, made by eight workers at once,
with about 50 claims alive at a time. Prints the whole time, and the milliseconds of Prepare and
Unprepare; then those of claims made one after the other, and the memory of the driver. Kubelet and
the API server are the Python fakes of tests/k8s, which take most of the time of a call.
"""

import os
import sys
import threading
import time
import unittest
from collections import deque

import grpc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "k8s"))
import dra_pb2 as dra  # noqa: E402
from dra_case import DraCase  # noqa: E402
from fake_dra_kubelet import SERVICE, FakeDraKubelet  # noqa: E402
from fake_kubelet import unary  # noqa: E402

CLAIMS, WORKERS, ALIVE, ALONE = 500, 8, 50, 100


def shown(took):
    took = sorted(1000 * each for each in took)
    return "p50 %.1f, p99 %.1f, most %.1f ms" % (took[len(took) // 2], took[len(took) * 99 // 100],
                                                 took[-1])


class Claims(DraCase):
    def timed(self, method, request, answer, times):
        begun = time.monotonic()
        said = unary(self.channel, SERVICE, method, answer, 45)(request)
        times.append(time.monotonic() - begun)
        self.assertEqual([each.error for each in said.claims.values() if each.error], [])

    def come(self, name, times):
        claim = self.allocate(name, memory="64Mi", device=self.names[hash(name) % 2])
        request = FakeDraKubelet.claims_of([claim], dra.NodePrepareResourcesRequest())
        self.timed("NodePrepareResources", request, dra.NodePrepareResourcesResponse, times)
        return claim

    def go(self, claim, times):
        request = FakeDraKubelet.claims_of([claim], dra.NodeUnprepareResourcesRequest())
        self.timed("NodeUnprepareResources", request, dra.NodeUnprepareResourcesResponse, times)

    def work(self, number):
        mine, coming, going = deque(), [], []
        try:
            for i in range(number, CLAIMS, WORKERS):
                mine.append(self.come("claim-%d" % i, coming))
                if len(mine) > ALIVE // WORKERS:
                    self.go(mine.popleft(), going)
            while mine:
                self.go(mine.popleft(), going)
        finally:
            self.times.append((coming, going))

    def test_come_and_go(self):
        self.start_plugin("--memory-unit", "64MiB", "--interval", "2000", "--review", "60",
                          "--log-level", "warning")
        self.names, self.times = self.device_names(), []
        self.channel = grpc.insecure_channel("unix:" + self.kubelet.info.endpoint)
        begun = time.monotonic()
        workers = [threading.Thread(target=self.work, args=(i,)) for i in range(WORKERS)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        took = time.monotonic() - begun
        coming, going = ([each for times in self.times for each in times[i]] for i in (0, 1))
        self.assertEqual((len(coming), len(going)), (CLAIMS, CLAIMS))
        print("\n%d claims in %.1f s, %d at once: Prepare %s; Unprepare %s"
              % (CLAIMS, took, WORKERS, shown(coming), shown(going)))
        coming, going = [], []
        for i in range(ALONE):
            self.go(self.come("alone-%d" % i, coming), going)
        print("one after the other: Prepare %s; Unprepare %s" % (shown(coming), shown(going)))
        with open("/proc/%d/status" % self.plugin.pid, encoding="ascii") as status:
            print("memory of gpurota-dra: %s"
                  % next(line.split(":")[1].strip() for line in status if line.startswith("VmHWM")))
        self.wait_for_leases(lambda leases: leases == [])
        self.channel.close()


if __name__ == "__main__":
    unittest.main()
