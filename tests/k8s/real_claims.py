"""Random claims of all classes on a node of 8 GPUs, given by Kubernetes' own scheduler
(random_claims.sh).

etcd, the API server, the controllers and the scheduler are real. The test plays kubelet: it calls
the driver, and tells the API server when pods have ended. One wish in ten is a pod that asks for
`gpurota.dev/gpu` and `gpurota.dev/turn` as resources, and the scheduler (since 1.36) makes the
claim for them.

No pod stays bound for more than 10 s to devices that it cannot have. No pod waits for more than 20
s while GPUs that it could have are idle; the scheduler itself pauses for up to 10 s between two
tries. No pod is bound that asks for more than the node has.
"""

import collections
import os
import random
import signal
import threading
import time
import unittest

import yaml
from cluster_claims import RESOURCES, all_devices
from cluster_pods import PODS
from control_plane import SERVER, Answer, Cluster
from dra_case import DraCase
from fake_scheduler import MANIFEST
from random_wishes import Wish, most_of

BOUND_PATIENCE, IDLE_PATIENCE, GIVEN_UP = 10, 20, 120
HOPELESS = 5  # a pod that can never run stays Pending this long
MOST_WISHES = 24
NODE = "node-1"
NODES = "/api/v1/nodes"
CLAIMS = RESOURCES + "/namespaces/default/resourceclaims"
BY_RESOURCE = {"gpu.gpurota.dev": "gpurota.dev/gpu", "turns.gpurota.dev": "gpurota.dev/turn"}


class RealApi:
    """The part of the API server that DraCase needs."""

    def __init__(self, cluster):
        self.cluster, self.url = cluster, SERVER
        self.token_file, self.certificate = cluster.path("token"), cluster.path("ca.crt")
        cluster.write("token", cluster.token)

    def run(self):
        pass

    def end(self):
        pass

    def devices(self):
        return all_devices(self.cluster, NODE)


class Wished:
    """One wish, with the names of its claim and of its pods."""

    def __init__(self, number, wish, runs, by_resources):
        self.wish, self.runs, self.by_resources = wish, runs, by_resources
        self.claim = "claim-%d" % number
        self.pods = ["pod-%d-%d" % (number, i) for i in range(len(wish.pods))]
        self.made, self.idle_since, self.over = time.monotonic(), None, set()

    def claim_object(self):
        configs = [{name: each[name] for name in ("requests", "opaque")}
                   for each in self.wish.configs]
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "metadata": {"name": self.claim, "annotations": self.wish.annotations},
                "spec": {"devices": {"requests": self.wish.requests, "config": configs}}}

    def pod_object(self, name):
        containers = [{"name": "main", "image": "none"}]
        claims = [{"name": "gpu", "resourceClaimName": self.claim}]
        if self.by_resources:
            wanted = [request["exactly"] for request in self.wish.requests]
            limits = [{BY_RESOURCE[each["deviceClassName"]]: each["count"]} for each in wanted]
            containers = [{"name": "c%d" % i, "image": "none", "resources": {"limits": each}}
                          for i, each in enumerate(limits)]
            claims = []
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"containers": containers, "resourceClaims": claims,
                         "terminationGracePeriodSeconds": 0}}


class Seen:
    """The errors, and how long things took. Used by all threads."""

    def __init__(self):
        self.lock, self.wrong, self.waited = threading.Lock(), [], []

    def add(self, what):
        with self.lock:
            self.wrong.append(what)
        print("wrong: " + what, flush=True)

    def took(self, seconds):
        with self.lock:
            self.waited.append(seconds)


def results_of(claim):
    allocation = claim.get("status", {}).get("allocation", {})
    return allocation.get("devices", {}).get("results", [])


def is_of(claim, pod):
    users = claim.get("status", {}).get("reservedFor", [])
    return any(each["uid"] == pod["metadata"]["uid"] for each in users)


class RealClaims(DraCase):
    def make_api(self):
        self.cluster = Cluster(os.environ["FOLDER"])
        print("Kubernetes", self.cluster.version.group(), flush=True)
        self.cluster.start_control_plane()
        with open(MANIFEST, encoding="utf-8") as file:
            classes = [each for each in yaml.safe_load_all(file) if each["kind"] == "DeviceClass"]
        self.cluster.write("classes.yaml", yaml.safe_dump_all(classes))
        self.cluster.kubectl("apply", "-f", self.cluster.path("classes.yaml"))
        return RealApi(self.cluster)

    def clean_up(self):
        super().clean_up()
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            if name in self.cluster.processes:
                self.cluster.stop(name, signal.SIGTERM)

    def make_node(self):
        self.cluster.ask("POST", NODES, {"apiVersion": "v1", "kind": "Node",
                                         "metadata": {"name": NODE}})
        self.beat()

    def beat(self):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        node = self.cluster.ask("GET", NODES + "/" + NODE)
        del node["metadata"]["resourceVersion"]  # overwrites changes of other clients
        capacity = {"cpu": "64", "memory": "1Ti", "pods": "1000"}
        ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now,
                 "lastTransitionTime": now}
        node["status"] = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
        self.cluster.ask("PUT", "%s/%s/status" % (NODES, NODE), node)
        self.beaten = time.monotonic()

    def test_of_all_classes_are_had_or_stay_pending(self):
        seed, count = int(os.environ["E2E_SEED"]), int(os.environ["E2E_CLAIMS"])
        self.make_node()
        self.start_plugin()
        while len(self.device_names()) < 8:
            time.sleep(0.1)
        most = most_of(self.devices())
        self.seen, self.refused, self.asked_by_resources = Seen(), 0, 0
        self.users, self.users_lock = collections.defaultdict(set), threading.Lock()
        self.threads = {}
        rng = random.Random(seed)
        wishes = [(Wish(rng, most), rng.random()) for _ in range(count)]
        print("seed %d, %d claims of up to %d GiB of a GPU" % (seed, count, most), flush=True)
        began = time.monotonic()
        self.run_all(wishes)
        took = time.monotonic() - began
        for each in self.threads.values():
            each.join()
        waited = sorted(self.seen.waited)
        print("%d pods were bound and had what they asked for (%d asked by resources), "
              "%d wishes could never be, %d faults, %.0f s"
              % (len(waited), self.asked_by_resources, self.refused, len(self.seen.wrong), took))
        print("from the binding to the lease: p50 %.2f s, p99 %.2f s, most %.2f s" % (
            waited[len(waited) // 2], waited[len(waited) * 99 // 100], waited[-1]), flush=True)
        self.assertEqual(self.seen.wrong, [])
        self.wait_for_leases(lambda leases: leases == [])
        self.assertEqual((self.specs(), self.plugin.poll()), ([], None))

    def run_all(self, wishes):
        alive, made, said = [], 0, time.monotonic()
        while made < len(wishes) or alive:
            while made < len(wishes) and len(alive) < MOST_WISHES:
                alive.append(self.begin(made, *wishes[made]))
                made += 1
            if time.monotonic() > self.beaten + 5:
                self.beat()
            pods = self.cluster.ask("GET", PODS)["items"]
            pods = {each["metadata"]["name"]: each for each in pods}
            claims = self.cluster.ask("GET", CLAIMS)["items"]
            alive = [each for each in alive if not self.step(each, pods, claims)]
            if time.monotonic() > said + 30:
                said = time.monotonic()
                print("%d made, %d alive" % (made, len(alive)), flush=True)
            time.sleep(0.2)

    def begin(self, number, wish, runs):
        by_resources = self.cluster.minor >= 36 and bool(wish.annotations)
        wished = Wished(number, wish, runs, by_resources)
        self.asked_by_resources += by_resources
        if not by_resources:
            self.cluster.ask("POST", CLAIMS, wished.claim_object())
        for name in wished.pods:
            self.cluster.ask("POST", PODS, wished.pod_object(name))
        return wished

    def step(self, wished, pods, claims):
        """Takes the next step for a wish. Returns whether all its pods have ended."""
        found = [pods[name] for name in wished.pods if name in pods and name not in self.threads]
        waiting = [pod for pod in found if not pod["spec"].get("nodeName")]
        for pod in found:
            if pod not in waiting:
                self.start_pod(wished, pod)
        if waiting and wished.wish.can_be:
            self.check_idle(wished, waiting[0], claims)
        elif waiting and time.monotonic() > wished.made + HOPELESS:
            self.remove(PODS, wished.pods[0])
            wished.over.add(wished.pods[0])
            self.refused += 1
        if wished.over != set(wished.pods):
            return False
        if not wished.by_resources:
            self.remove(CLAIMS, wished.claim)
        return True

    def remove(self, path, name):
        try:
            self.cluster.ask("DELETE", path + "/" + name)
        except Answer as answer:
            if answer.code != 404:
                raise

    def check_idle(self, wished, pod, claims):
        taken = {each["device"].removesuffix("-whole").removesuffix("-turns")
                 for claim in claims for each in results_of(claim)}
        if 8 - len(taken) < wished.wish.gpus() or any(is_of(claim, pod) for claim in claims):
            wished.idle_since = None
            return
        wished.idle_since = wished.idle_since or time.monotonic()
        idle = time.monotonic() - wished.idle_since
        if idle > IDLE_PATIENCE:
            why = [each.get("message") for each in pod["status"].get("conditions", [])]
            self.seen.add("%s waits for %.0f s for %s, and only %s are taken: %s; published: %s" % (
                pod["metadata"]["name"], idle, wished.wish.requests, sorted(taken), why,
                self.offered()))
            wished.idle_since = time.monotonic() + GIVEN_UP

    def offered(self):
        """What the device of each GPU reports as available, in one line each."""
        return ["%s %s" % (name, {key: next(iter(value.values()))
                                  for key, value in device["attributes"].items()
                                  if key in ("available", "whole")})
                for name, device in sorted(self.devices().items())]

    # Kubelet's part of a pod's life.

    def start_pod(self, wished, pod):
        name = pod["metadata"]["name"]
        if not wished.wish.can_be:
            self.seen.add("%s is bound, which asks for more than there is" % name)
        self.threads[name] = threading.Thread(target=self.live, args=(wished, pod), daemon=True)
        self.threads[name].start()

    def live(self, wished, pod):
        name = pod["metadata"]["name"]
        try:
            claims = self.cluster.ask("GET", CLAIMS)["items"]
            claim, = [each for each in claims if is_of(each, pod)]
            self.hold(wished, name, claim)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.seen.add("%s: %r" % (name, error))
        self.remove(PODS, name)
        wished.over.add(name)

    def hold(self, wished, name, claim):
        """Plays a pod, which asks until it has the claim's devices. The last pod of a claim ends
        the claim."""
        uid = claim["metadata"]["uid"]
        with self.users_lock:
            self.users[uid].add(name)
        if self.is_prepared(wished, name, claim):
            time.sleep(wished.runs)
        with self.users_lock:
            self.users[uid].discard(name)
            if self.users[uid]:
                return
        ended, = self.kubelet.unprepare(claim)
        while ended:
            time.sleep(0.3)
            ended, = self.kubelet.unprepare(claim)

    def is_prepared(self, wished, name, claim):
        began, said = time.monotonic(), False
        answer, = self.kubelet.prepare(claim)
        while answer.error and time.monotonic() < began + GIVEN_UP:
            if not said and time.monotonic() > began + BOUND_PATIENCE:
                said = True
                self.seen.add("%s is bound and cannot have it: %s; %s; %s" % (
                    name, answer.error, wished.wish.requests, results_of(claim)))
            time.sleep(0.3)
            answer, = self.kubelet.prepare(claim)
        if answer.error:
            return False
        self.seen.took(time.monotonic() - began)
        return True


if __name__ == "__main__":
    unittest.main(verbosity=2)
