"""Random claims of all classes on a node of 8 GPUs, with a scheduler that counts as Kubernetes'
does (fake_scheduler.py).

No pod stays bound for more than 10 s to devices that it cannot have, and no pod waits that long
while GPUs that it could have are idle.

    tests/k8s/run.sh tests/k8s/random_claims_test.py BUILD   60 claims, as CI runs it
    tests/k8s/run.sh tests/k8s/random_claims_test.py BUILD RandomClaims.long_run
                                                             500
    E2E_SEED=7 …                                             others
"""
# On the machine h100x8.

import os
import random
import threading
import time
import unittest

from dra_case import DraCase
from fake_kubelet import wait_until
from fake_scheduler import FakeScheduler
from random_wishes import Wish, most_of

PATIENCE = 10
MOST_PODS = 24


class Pod:
    def __init__(self, number, wish, runs):
        self.name, self.wish, self.runs = "pod-%d" % number, wish, runs
        self.made, self.idle_since, self.claim = time.monotonic(), None, None
        self.is_over, self.error = False, None


class RandomClaims(DraCase):
    def test_of_all_classes_are_had_or_stay_pending(self):
        self.run_claims(60)

    def long_run(self):
        self.run_claims(500)

    def run_claims(self, count):
        seed = int(os.environ.get("E2E_SEED", "1"))
        print("E2E_SEED=%d, %d claims" % (seed, count), flush=True)
        rng = random.Random(seed)
        self.start_plugin()
        wait_until(lambda: len(self.device_names()) == 8, "8 GPUs")
        self.scheduler, self.threads, self.bound, self.refused = FakeScheduler(self.api), [], 0, 0
        self.addCleanup(self.join)
        most = most_of(self.devices())
        wishes = [(Wish(rng, most), rng.random()) for _ in range(count)]
        pods, made, began = [], 0, time.monotonic()
        while made < count or pods:
            while made < count and len(pods) < MOST_PODS:
                pods.append(Pod(made, *wishes[made]))
                made += 1
            for pod in pods:
                self.step(pod)
            pods = [pod for pod in pods if not pod.is_over]
            time.sleep(0.02)
        self.join()
        print("%d were bound, %d could never be, %.0f s"
              % (self.bound, self.refused, time.monotonic() - began), flush=True)
        self.assertEqual(self.bound + self.refused, count)
        self.wait_for_leases(lambda leases: leases == [])
        self.assertEqual((self.specs(), self.plugin.poll()), ([], None))

    def join(self):
        for thread in self.threads:
            thread.join()

    def step(self, pod):
        """Lets the scheduler take the next step for a pod."""
        self.assertIsNone(pod.error, "%s, seed %s" % (pod.name, os.environ.get("E2E_SEED", "1")))
        if pod.claim:
            return
        results = self.scheduler.results_for(pod.wish.requests)
        if results:
            self.assertTrue(pod.wish.can_be, "%s has %s" % (pod.wish.requests, results))
            self.bind(pod, results)
        elif not pod.wish.can_be and time.monotonic() - pod.made > 1:
            self.refused += 1
            pod.is_over = True
        elif pod.wish.can_be:
            self.check_idle(pod)

    def check_idle(self, pod):
        taken = {each["device"].removesuffix("-whole").removesuffix("-turns")
                 for each in self.scheduler.taken()}
        if 8 - len(taken) < pod.wish.gpus():
            pod.idle_since = None
            return
        pod.idle_since = pod.idle_since or time.monotonic()
        self.assertLess(time.monotonic() - pod.idle_since, PATIENCE,
                        "%s waits for %s, and only %s are taken"
                        % (pod.name, pod.wish.requests, sorted(taken)))

    def bind(self, pod, results):
        configs = self.scheduler.configs_for(pod.wish.requests, results) + pod.wish.configs
        with self.api.lock:
            pod.claim = self.api.allocate("default", pod.name, results, configs, pod.wish.pods,
                                          pod.wish.annotations)
            pod.claim["spec"] = {"devices": {"requests": pod.wish.requests}}
        self.bound += 1
        thread = threading.Thread(target=self.live, args=(pod,), daemon=True)
        self.threads.append(thread)
        thread.start()

    def live(self, pod):
        """Plays kubelet: asks for the pod's claim until the driver grants it, reports the end of
        the pod, and frees the claim."""
        until = time.monotonic() + PATIENCE
        answer, = self.kubelet.prepare(pod.claim)
        while answer.error and time.monotonic() < until:
            time.sleep(0.3)
            answer, = self.kubelet.prepare(pod.claim)
        if answer.error:
            pod.error = "%s\n%s\n%s" % (answer.error, pod.wish.requests, pod.claim["status"])
            return
        time.sleep(pod.runs)
        ended, = self.kubelet.unprepare(pod.claim)
        while ended and time.monotonic() < until + PATIENCE:
            time.sleep(0.3)
            ended, = self.kubelet.unprepare(pod.claim)
        with self.api.lock:
            del self.api.claims["default", pod.name]
        pod.error = ended or None
        pod.is_over = not ended


if __name__ == "__main__":
    unittest.main(verbosity=2)
