"""What cluster.sh tries with dynamic resources (resource.k8s.io/v1): gpurota-dra from its manifest, and pods with claims of its three
classes.
"""

import glob
import re
import subprocess

from cluster_pods import COMPUTE, GREEDY, Restarts, a_released_lease, two_and_a_third
from control_plane import NODE, Answer
from real_node import PROGRAM, say, wait_until

RESOURCES = "/apis/resource.k8s.io/v1"
TEMPLATES = RESOURCES + "/namespaces/default/resourceclaimtemplates"
SHARE = 3
DRIVER = "system:serviceaccount:gpurota:gpurota-dra"


def why_not(cluster):
    """None where dynamic resources can be tried."""
    if not cluster.find(RESOURCES):
        return "this API server has no resource.k8s.io/v1"
    said = subprocess.run(["containerd", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r" v?([0-9]+)\.([0-9]+)", said)
    if tuple(map(int, version.groups())) < (1, 7):
        return "containerd%s does not know CDI; put 1.7 or newer beside kubelet" % version.group()
    return None


def devices(cluster):
    """What the driver has published, by name."""
    slices = cluster.ask("GET", RESOURCES + "/resourceslices")["items"]
    return {device["name"]: device for each in slices if each["spec"]["driver"] == "gpurota.dev" and each["spec"]["nodeName"] == NODE
            for device in each["spec"]["devices"]}


def all_are_available(cluster):
    found = devices(cluster)
    return len(found) == 3 and all(each["attributes"]["available"]["bool"] for each in found.values())


def make_template(cluster, name, capacity=None):
    """Of claims of the class NAME.gpurota.dev."""
    wanted = {"deviceClassName": name + ".gpurota.dev"}
    if capacity:
        wanted["capacity"] = {"requests": {"memory": capacity}}
    cluster.ask("POST", TEMPLATES, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
                                    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}}})


def claiming(pods, template):
    def add(name, command=GREEDY, gib=None, **more):
        pods.add(name, {"claims": [{"name": "gpu"}]}, command, gib,
                 resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": template}], **more)
    return add


def is_refused_elsewhere(cluster):
    """Whether the policy keeps the driver's account from writing slices of a node that is not its pod's; its role would allow it."""
    pool = {"name": "elsewhere", "generation": 1, "resourceSliceCount": 1}
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "elsewhere"},
            "spec": {"driver": "gpurota.dev", "nodeName": "elsewhere", "pool": pool, "devices": []}}
    try:
        cluster.ask("POST", RESOURCES + "/resourceslices", made, user=DRIVER)
    except Answer as answer:
        assert "ResourceSlices of its own node only" in answer.text, answer.text
        return True
    cluster.ask("DELETE", RESOURCES + "/resourceslices/elsewhere")
    return False


def by_memory(cluster, pods):
    make_template(cluster, "memory", "%dGi" % SHARE)
    add = claiming(pods, "memory")

    def add_greedy(name):
        add(name, gib=SHARE)
    two_and_a_third(pods, add_greedy, "cannot allocate all claims", lambda: Restarts(pods, "gpurota-dra", 1, lambda: devices(cluster)))
    a_released_lease(pods, add_greedy)


def by_turns(cluster, pods):
    wait_until(lambda: all_are_available(cluster), "the GPU to be free")
    make_template(cluster, "turns", "2Gi")
    add = claiming(pods, "turns")
    pods.in_turns(add, ["turn-%d" % i for i in range(3)])
    # A program that ends gives its lease back, though its pod stays.
    add("completed", COMPUTE, restart="Never")
    pods.wait_computed("completed")
    pods.wait_leases()
    pods.remove("completed")


def by_whole(cluster, pods):
    wait_until(lambda: all_are_available(cluster), "the GPU to be free")
    make_template(cluster, "gpu")
    add = claiming(pods, "gpu")
    add("whole", [PROGRAM, "hold", "100"])
    wait_until(lambda: "holding 100 MiB" in pods.output_of("whole"), "the program with a whole GPU")
    assert pods.leases()["whole"]["share"] == "exclusive", pods.leases()
    add("other", [PROGRAM, "hold", "100"])
    pods.wait_pending("other", "cannot allocate all claims")
    pods.remove("whole")
    wait_until(lambda: "holding 100 MiB" in pods.output_of("other"), "the next program with a whole GPU")
    pods.remove("other")


def try_all(cluster, pods):
    wait_until(lambda: all_are_available(cluster), "the devices")
    say("gpurota-dra has published", ", ".join(sorted(devices(cluster))))
    wait_until(lambda: is_refused_elsewhere(cluster), "the policy")
    by_memory(cluster, pods)
    by_turns(cluster, pods)
    by_whole(cluster, pods)
    pods.wait_leases()
    wait_until(lambda: not cluster.ask("GET", RESOURCES + "/resourceclaims")["items"], "the end of all claims")
    wait_until(lambda: not glob.glob("/var/run/cdi/*gpurota*"), "the end of all descriptions for containerd")
    say("no claim is left, and no description of one on the node")
    cluster.kubectl("delete", "daemonset", "gpurota-dra", "--namespace=gpurota")
    wait_until(lambda: not devices(cluster), "kubelet to remove what the driver had published")
