"""The tests of cluster.sh: gpurota's manifests and its image in a real cluster of one node with one
simulated GPU of 8 GiB, by resources and, with Kubernetes 1.34 or newer, by claims. Pods are held to
their memory. One pod too many waits with a reason, and runs when there is room. Every killed
program comes back without harm, and at the end no lease is left.

    real_cluster.py FOLDER        as root, in namespaces of its own (cluster.sh)
"""

import glob
import json
import os
import re
import signal
import subprocess
import sys

import yaml

import cluster_claims
from cluster_pods import (COMPUTE, GREEDY, Pods, Restarts, a_released_lease, allocatable,
                          two_and_a_third)
from control_plane import Cluster
from real_node import MEMORY, PREFIX, say, wait_until

PACKAGING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging",
                         "kubernetes")
TURN = "gpurota.dev/turn"
UNITS = 7  # of the GPU's memory, less what the driver keeps
SHARE = 3


def manifest(name):
    return os.path.join(PACKAGING, name + ".yaml")


def documents(name):
    with open(manifest(name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def import_gpurota(cluster):
    """Imports the image that `./dev image` makes, with this build's programs, under the name in the
    manifests."""
    reference, = {each["spec"]["template"]["spec"]["containers"][0]["image"]
                  for name in ("gpurotad", "device-plugin", "dra")
                  for each in documents(name) if each["kind"] == "DaemonSet"}
    library, = glob.glob(os.path.join(PREFIX, "lib*/**/libgpurota.so"), recursive=True)
    programs = [os.path.join(PREFIX, each)
                for each in ("sbin/gpurota-device-plugin", "sbin/gpurota-dra", "sbin/gpurotad",
                             "bin/gpurota")]
    os.mkdir(cluster.path("programs"))
    stripped = []
    for path in programs + [library]:
        stripped.append(os.path.join(cluster.path("programs"), os.path.basename(path)))
        subprocess.run(["strip", "-o", stripped[-1], path], check=True)
    subprocess.run([sys.executable, "-B", os.path.join(PACKAGING, "make_image.py"),
                    cluster.path("gpurota.tar"), reference, *stripped],
                   check=True, stdout=subprocess.DEVNULL)
    cluster.import_image("gpurota.tar")
    say(reference, "is on the node")


def apply(cluster, name):
    said = cluster.kubectl("apply", "--validate=true", "-f", manifest(name))
    assert not re.search("warning|error", said, re.I), said
    say("%s.yaml:" % name, ", ".join(said.split("\n")).rstrip(", "))


def start_daemon(cluster):
    apply(cluster, "namespace")
    apply(cluster, "gpurotad")
    # Programs may move more than the default half of the machine's memory, so that two of them can
    # take turns.
    cluster.write("gpurota.toml", '[turns]\nhost_budget = "90%"\n')
    cluster.kubectl("create", "configmap", "gpurota", "--from-file=" + cluster.path("gpurota.toml"),
                    "--namespace=gpurota")
    # Only simulated GPUs need this variable and this mount.
    machine = os.environ["GPUROTA_SIM_DIR"]
    container = {"name": "gpurotad", "env": [{"name": "GPUROTA_SIM_DIR", "value": machine}],
                 "volumeMounts": [{"name": "machine", "mountPath": machine}]}
    volume = {"name": "machine", "hostPath": {"path": machine}}
    cluster.kubectl("patch", "daemonset", "gpurotad", "--namespace=gpurota", "--patch",
                    json.dumps(
                        {"spec": {"template": {"spec": {"containers": [container],
                                                        "volumes": [volume]}}}}))
    cluster.roll_out("gpurotad")
    status = cluster.gpurota("status")
    assert "gpurota Demo GPU 8GB" in status, status
    said = cluster.gpurota("config", "check")
    say("gpurota status in its pod shows the GPU;", said.strip())


def check_by_doctor():
    done = subprocess.run([os.path.join(PREFIX, "bin/gpurota"), "doctor", "--kubernetes"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env=dict(os.environ, GPUROTA_RUNTIME_DIR="/run/gpurota"))
    assert done.returncode == 0, done.stdout
    say("gpurota doctor --kubernetes:",
        *re.findall("^ok +(?:kubelet|device plugin) +(.*)", done.stdout, re.M), sep="; ")


def by_resources(cluster, pods):
    apply(cluster, "device-plugin")
    cluster.roll_out("gpurota-device-plugin")

    def settled():
        return allocatable(cluster).get(MEMORY) == str(UNITS)
    wait_until(settled, "the memory to be allocatable")
    say("allocatable:", {name: amount for name, amount in allocatable(cluster).items()
                         if name.startswith("gpurota.dev/")})
    check_by_doctor()

    def add(name, command=GREEDY, **more):
        pods.add(name, {"limits": {MEMORY: SHARE}}, command, SHARE, **more)
    two_and_a_third(pods, add, "Insufficient " + MEMORY,
                    lambda: Restarts(pods, "gpurota-device-plugin", 3, settled))
    a_completed_pod(pods, add)
    a_released_lease(pods, add)
    # Adds as many pods as there is room for in the machine's memory.
    names = ["turn-%d" % i for i in range(min(3, int(allocatable(cluster)[TURN])))]
    pods.in_turns(lambda name, command: pods.add(name, {"limits": {TURN: 1}}, command), names)
    cluster.kubectl("delete", "-f", manifest("device-plugin"))
    assert "gpurota Demo GPU 8GB" in cluster.gpurota("status"), "gpurotad went with it"


def a_completed_pod(pods, add):
    """The pod's lease ends when its program does, although the pod still exists and kubelet before
    1.34 still lists it."""
    add("beside")
    pods.wait_held("beside")
    add("completed", COMPUTE, restart="Never")
    pods.wait_computed("completed")
    wait_until(lambda: pods.find("completed")["status"]["phase"] == "Succeeded",
               "the pod to be completed")
    pods.wait_leases("beside")
    add("next")
    pods.wait_held("next")
    pods.wait_leases("beside", "next")
    say("the lease of the completed pod is gone, and the next pod has its memory")
    pods.remove("completed", "beside", "next")
    pods.wait_leases()


def check_known_parts(cluster, name):
    """Lets the server check a manifest that is made for newer versions: only the parts that the
    server's version knows. Nothing is stored."""
    known = [each for each in documents(name)
             if each["apiVersion"].split("/")[0] in ("v1", "apps", "rbac.authorization.k8s.io")]
    cluster.write("known.yaml", yaml.safe_dump_all(known))
    cluster.kubectl("apply", "--validate=true", "--dry-run=server", "-f",
                    cluster.path("known.yaml"))
    say("of %s.yaml the server takes:" % name, ", ".join(each["kind"] for each in known))


def try_all(cluster):
    cluster.start_containerd()
    import_gpurota(cluster)
    cluster.start_control_plane()
    cluster.start_kubelet()
    wait_until(lambda: cluster.is_ready() or cluster.ended(), "the node to be ready")
    assert not cluster.ended(), "not all of Kubernetes runs"
    say("the node is ready")
    pods = Pods(cluster)
    start_daemon(cluster)
    by_resources(cluster, pods)
    why_not = cluster_claims.why_not(cluster)
    if why_not:
        check_known_parts(cluster, "dra")
        print("skipped: dynamic resources: " + why_not, flush=True)
    else:
        apply(cluster, "dra")
        cluster.roll_out("gpurota-dra")
        cluster_claims.try_all(cluster, pods)
    status = pods.call("Status")
    assert not status["leases"] and not status["findings"], status
    say("done; no lease is left")
    for name in ("kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd",
                 "containerd"):
        cluster.stop(name, signal.SIGTERM)


def main(folder):
    cluster = Cluster(folder)
    say("Kubernetes", cluster.version.group())
    try:
        try_all(cluster)
    except Exception:
        cluster.last_words()
        raise


main(sys.argv[1])
