"""The tests of kubelet.sh with a real kubelet: a pod is refused beyond its memory, and then kubelet
and the plugin are restarted at random while pods come and go. At each step every device is
allocatable, every running pod is held to its limit, and at the end no lease is left.

    real_kubelet.py FOLDER ROUNDS SEED        as root, in namespaces of its own (kubelet.sh)
"""

import json
import os
import random
import re
import signal
import sys
import time
import urllib.error
import urllib.request
import uuid

from real_node import (MEMORY, PREFIX, PROGRAM, Machine, ask_daemon, is_refused_beyond, logged,
                       make_pod, say, wait_until)

KUBELET = os.environ["KUBELET"]
UNITS = 14  # of two simulated GPUs of 8 GiB, less what the driver keeps


class Node(Machine):
    def __init__(self, folder):
        super().__init__(folder)
        self.pods, self.refused = {}, 0
        for name in ("run", "state", "manifests"):
            os.mkdir(self.path(name), 0o700)
        self.write("gpurota.toml", "")
        self.write("cni/10-lo.conflist",
                   '{"cniVersion":"0.4.0","name":"node","plugins":[{"type":"loopback"}]}')

    # The programs of the node.

    def start_daemon(self):
        self.spawn("gpurotad", os.path.join(PREFIX, "sbin/gpurotad"), "--runtime-dir",
                   self.path("run"), "--state-dir", self.path("state"), "--config",
                   self.path("gpurota.toml"))
        wait_until(lambda: os.path.exists(self.path("run/control.sock")), "gpurotad")

    def start_plugin(self):
        self.spawn("plugin", os.path.join(PREFIX, "sbin/gpurota-device-plugin"), "--runtime-dir",
                   self.path("run"), "--state-dir", self.path("plugin"), "--interval", "500",
                   "--log-level", "debug")

    def start_kubelet(self):
        self.spawn("kubelet", KUBELET, "--container-runtime=remote",
                   "--container-runtime-endpoint=unix://" + self.path("ctd.sock"),
                   "--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki",
                   "--pod-manifest-path=" + self.path("manifests"), "--file-check-frequency=1s",
                   "--sync-frequency=2s", "--node-status-update-frequency=2s",
                   "--address=127.0.0.1", "--healthz-bind-address=127.0.0.1",
                   "--read-only-port=10255", "--hostname-override=node1", "--node-ip=10.254.0.1",
                   "--cgroup-driver=cgroupfs", "--cgroup-root=/", "--runtime-cgroups=/",
                   "--kubelet-cgroups=/", "--oom-score-adj=0", "--fail-swap-on=false",
                   "--enforce-node-allocatable=", "--make-iptables-util-chains=false",
                   "--eviction-hard=", "--image-gc-high-threshold=100", "--v=2")

    # Answers of the programs.

    def call(self, method, **parameters):
        return ask_daemon(self.path("run/control.sock"), method, **parameters)

    def leases(self):
        return self.call("Status")["leases"]

    def allocatable(self):
        """The number of healthy devices in kubelet's checkpoint."""
        try:
            with open("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
                      encoding="utf-8") as file:
                registered = json.load(file)["Data"]["RegisteredDevices"] or {}
        except (OSError, ValueError):
            return {}
        return {name: len(devices or []) for name, devices in registered.items()}

    def registered(self):
        """Whether kubelet has registered all devices of the plugin since the last restart of
        kubelet or the plugin."""
        try:
            stored = os.stat("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint").st_mtime
        except OSError:
            return False
        return (stored > self.restarted and self.registrations() >= self.registrations_before + 3
                and self.allocatable().get(MEMORY) == UNITS)

    def registrations(self):
        return self.log_of("plugin").count("kubelet has registered")

    def restarts(self):
        self.restarted = time.time()
        self.registrations_before = (self.registrations() if os.path.exists(self.path("plugin.log"))
                                     else 0)

    def seen_pods(self):
        try:
            with urllib.request.urlopen("http://127.0.0.1:10255/pods", timeout=10) as answer:
                return {pod["metadata"]["name"].removesuffix("-node1"): pod
                        for pod in json.load(answer)["items"] or []}
        except (urllib.error.URLError, OSError, ValueError):
            return {}

    # Pods.

    def add(self, name, units):
        identity = str(uuid.uuid4())
        made = make_pod(name, [PROGRAM, "greedy", "64"], {"limits": {MEMORY: units}})
        made["metadata"]["uid"] = identity
        self.write("manifests/%s.yaml" % name, json.dumps(made))
        self.pods[name] = (identity, units)

    def remove(self, name):
        os.unlink(self.path("manifests/%s.yaml" % name))
        del self.pods[name]

    def output_of(self, name):
        return logged(name + "-node1", self.pods[name][0])

    def is_held(self, name):
        return is_refused_beyond(self.pods[name][1], self.output_of(name))

    def has_failed(self, name):
        pod = self.seen_pods().get(name)
        return pod is not None and pod["status"].get("phase") == "Failed"


def first_pod(node):
    node.add("first", 2)
    wait_until(lambda: node.is_held("first"), "the first pod to be refused")
    say("a pod with 2 GiB:", re.search("refused at.*", node.output_of("first")).group())
    lease, = node.leases()
    assert lease["kind"] == "pod" and lease["gpus"][0]["limit_bytes"] == 2 << 30, lease
    wait_until(lambda: node.leases()[0].get("pod"), "the name of the pod")
    named = node.leases()[0]["pod"]
    assert named["namespace"] == "default" and named["container"] == "main", named
    say("its lease is", lease["lease_id"], "of",
        "/".join((named["namespace"], named["name"], named["container"])))
    processes = wait_until(lambda: [each for each in node.call("ListProcesses")["processes"]
                                    if each.get("container")], "its process")
    assert processes[0]["container"]["pod"] == node.pods["first"][0], processes[0]
    node.remove("first")
    wait_until(lambda: not node.leases(), "the end of the first lease")
    say("the pod is gone, and so is its lease")


def one_round(node, chance, number):
    action = chance.choice(["kubelet", "plugin", "add", "add", "remove"])
    if action == "kubelet":
        node.stop("kubelet", chance.choice([signal.SIGTERM, signal.SIGKILL]))
        node.restarts()
        node.start_kubelet()
    elif action == "plugin":
        node.stop("plugin", chance.choice([signal.SIGTERM, signal.SIGKILL]))
        node.restarts()
        node.start_plugin()
    elif action == "add":
        units = chance.randint(1, 3)
        if sum(units for _, units in node.pods.values()) + units <= UNITS - 4:
            node.add("pod-%d" % number, units)
    elif node.pods:
        node.remove(chance.choice(sorted(node.pods)))
    return action


def settle(node):
    wait_until(node.registered, "all devices to be allocatable (%s)" % node.allocatable())
    for name in list(node.pods):
        # kubelet refuses a pod that comes while kubelet has no devices. Such a pod must never run.
        if wait_until(lambda name=name: node.is_held(name) or node.has_failed(name),
                      "pod %s to be held to its limit" % name):
            if node.has_failed(name):
                assert not node.output_of(name), "a pod that was refused has run"
                node.refused += 1
                node.remove(name)


def main(folder, rounds, seed):
    print("seed %d, %d rounds" % (seed, rounds), flush=True)
    chance = random.Random(seed)
    node = Node(folder)
    node.start_containerd()
    node.start_daemon()
    node.restarts()
    node.start_plugin()
    node.start_kubelet()
    wait_until(node.registered, "the first registration")
    say("kubelet has", node.allocatable())
    first_pod(node)
    counts = {}
    for number in range(rounds):
        action = one_round(node, chance, number)
        counts[action] = counts.get(action, 0) + 1
        # The next action often begins before the effects of this one have settled.
        if chance.random() < 0.7:
            settle(node)
            say("round %d, %s: %d pods, %d leases"
                % (number + 1, action, len(node.pods), len(node.leases())))
    settle(node)
    assert len(node.leases()) >= len(node.pods), node.leases()
    wait_until(lambda: len(node.leases()) == len(node.pods), "as many leases as pods")
    for name in list(node.pods):
        node.remove(name)
    wait_until(lambda: not node.leases(), "the end of all leases")
    findings = node.call("Status")["findings"]
    assert not findings, findings
    say("done:", counts, "%d pods were refused by kubelet" % node.refused, "; no lease is left")
    for name in ("kubelet", "plugin", "gpurotad", "containerd"):
        node.stop(name, signal.SIGTERM)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
