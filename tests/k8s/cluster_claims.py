"""The tests of cluster.sh with dynamic resources (resource.k8s.io/v1): gpurota-dra from its
manifest, and pods with claims of its three classes. """

import glob
import os
import re
import signal
import subprocess
import time

from cluster_pods import COMPUTE, GREEDY, PODS, Restarts, a_released_lease, two_and_a_third
from control_plane import NODE, SECOND, Answer
from real_node import PROGRAM, say, wait_until
from second_node import SecondNode

RESOURCES = "/apis/resource.k8s.io/v1"
TEMPLATES = RESOURCES + "/namespaces/default/resourceclaimtemplates"
SHARE = 3
DRIVER = "system:serviceaccount:gpurota:gpurota-dra"


def why_not(cluster):
    """Why dynamic resources cannot be tested here; None where they can."""
    if not cluster.find(RESOURCES):
        return "this API server has no resource.k8s.io/v1"
    said = subprocess.run(["containerd", "--version"], capture_output=True, text=True,
                          check=True).stdout
    version = re.search(r" v?([0-9]+)\.([0-9]+)", said)
    if tuple(map(int, version.groups())) < (1, 7):
        return "containerd%s does not know CDI; put 1.7 or newer beside kubelet" % version.group()
    return None


def all_devices(cluster, node=NODE):
    """The devices that the driver of the node has published, by name."""
    specs = [each["spec"] for each in cluster.ask("GET", RESOURCES + "/resourceslices")["items"]]
    ours = [each for each in specs if (each["driver"], each["nodeName"]) == ("gpurota.dev", node)]
    return {device["name"]: device for spec in ours for device in spec.get("devices") or []}


def all_are_available(cluster, node=NODE):
    found = all_devices(cluster, node)
    return (len(found) == 3
            and all(each["attributes"]["available"]["bool"] for each in found.values()))


def make_template(cluster, name, capacity=None, kind=None, **more):
    """Makes a template of claims of the class KIND.gpurota.dev; KIND is the template's name by
    default."""
    wanted = {"deviceClassName": (kind or name) + ".gpurota.dev", **more}
    if capacity:
        wanted["capacity"] = {"requests": {"memory": capacity}}
    cluster.ask("POST", TEMPLATES, {"apiVersion": "resource.k8s.io/v1",
                                    "kind": "ResourceClaimTemplate", "metadata": {"name": name},
                                    "spec": {
                                        "spec": {"devices": {"requests": [{"name": "gpu",
                                                                           "exactly": wanted}]}}}})


def claiming(pods, template):
    def add(name, command=GREEDY, gib=None, **more):
        pods.add(name, {"claims": [{"name": "gpu"}]}, command, gib,
                 resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": template}], **more)
    return add


def is_refused_elsewhere(cluster):
    """Whether the policy keeps the driver's account from writing slices of a node other than its
    pod's. The role of the account would allow that."""
    pool = {"name": "elsewhere", "generation": 1, "resourceSliceCount": 1}
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": "elsewhere"},
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
    two_and_a_third(pods, add_greedy, "cannot allocate all claims",
                    lambda: Restarts(pods, "gpurota-dra", 1, lambda: all_devices(cluster)))
    a_released_lease(pods, add_greedy)


def by_turns(cluster, pods):
    wait_until(lambda: all_are_available(cluster), "the GPU to be free")
    make_template(cluster, "turns", "2Gi")
    add = claiming(pods, "turns")
    pods.in_turns(add, ["turn-%d" % i for i in range(3)])
    # When a program ends, its lease ends, even if the pod stays.
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
    wait_until(lambda: "holding 100 MiB" in pods.output_of("other"),
               "the next program with a whole GPU")
    pods.remove("other")
    pods.wait_leases()


def with_admin_access(cluster, pods):
    """A claim that only wants to see a device is refused with a reason."""
    namespace = cluster.ask("GET", "/api/v1/namespaces/default")
    namespace["metadata"]["labels"]["resource.kubernetes.io/admin-access"] = "true"
    cluster.ask("PUT", "/api/v1/namespaces/default", namespace)
    make_template(cluster, "admin", kind="memory", adminAccess=True)
    claiming(pods, "admin")("admin", [PROGRAM, "hold", "100"])
    said = wait_until(
        lambda: [each for each in pods.has_event("admin", "FailedPrepareDynamicResources")
                 if "adminAccess" in each], "the reason why adminAccess is refused")
    say("pod admin:", said[0])
    assert not pods.leases(), pods.leases()
    pods.remove("admin")


def restart_kubelet(cluster, meanwhile):
    cluster.stop("kubelet", signal.SIGTERM)
    meanwhile()
    cluster.start_kubelet()
    wait_until(cluster.is_ready, "the node to be ready")


def a_claim_that_kubelet_forgets(cluster, pods):
    """The claim's lease ends when the API server no longer has the claim, and the GPU is offered
    again."""
    add = claiming(pods, "memory")
    add("forgotten", gib=SHARE)
    pods.wait_held("forgotten")
    pods.wait_leases("forgotten")

    def forget():
        os.unlink("/var/lib/kubelet/dra_manager_state")
        cluster.ask("DELETE", "%s/forgotten?gracePeriodSeconds=0" % PODS)
    restart_kubelet(cluster, forget)
    wait_until(lambda: not pods.find("forgotten"), "the end of the pod")
    # The driver takes the claim for gone only after the API server has answered twice that there is
    # none.
    wait_until(lambda: not pods.leases(), "the end of the lease", patience=300)
    wait_until(lambda: all_are_available(cluster), "the GPU to be offered again")
    say("kubelet has lost what it knew of claims: the lease is gone, and the GPU is offered")


def owner_of_slices(cluster):
    items = cluster.ask("GET", RESOURCES + "/resourceslices")["items"]
    return {each["metadata"]["ownerReferences"][0]["uid"] for each in items}


def a_new_node_object(cluster):
    """The new Node object becomes the owner of the driver's slices, and then the driver writes
    nothing more."""
    def delete():
        cluster.ask("DELETE", "/api/v1/nodes/" + NODE)
    restart_kubelet(cluster, delete)

    def new_owner():
        node = cluster.find("/api/v1/nodes/" + NODE)
        return owner_of_slices(cluster) == {node["metadata"]["uid"]}
    wait_until(lambda: new_owner() and all_are_available(cluster), "slices of the new node")
    cluster.roll_out("gpurota-dra")
    wait_until(lambda: new_owner() and all_are_available(cluster), "slices of the new node")

    def versions():
        return {each["metadata"]["name"]: each["metadata"]["resourceVersion"]
                for each in cluster.ask("GET", RESOURCES + "/resourceslices")["items"]}
    before = versions()
    time.sleep(10)
    assert versions() == before, (before, versions())
    say("the node's object was made anew: its slices are there, and stay as they are")


def on_two_nodes(cluster, pods):
    """A pod goes to the node that has room, and waits while no node has."""
    second = SecondNode(cluster)
    second.start()
    make_template(cluster, "most", "6Gi", "memory")
    for node in (NODE, SECOND):
        wait_until(lambda node=node: all_are_available(cluster, node), "the devices of " + node)
    pods.logs.append(second.outside("/var/log/pods"))
    for template, kind in (("gpu", "exclusive"), ("most", "slice")):
        add = claiming(pods, template)

        def node_of(name):
            wait_until(lambda: "holding 100" in pods.output_of(name), "the program of pod " + name)
            return pods.find(name)["spec"]["nodeName"]
        nodes = []
        for name in ("first", "second"):
            add(name, [PROGRAM, "hold", "100"])
            nodes.append(node_of(name))
        assert sorted(nodes) == [NODE, SECOND], nodes
        leases = [pods.leases(), second.leases()]
        assert sorted(name for each in leases for name in each) == ["first", "second"], leases
        assert {lease["share"] for each in leases for lease in each.values()} == {kind}, leases
        add("third", [PROGRAM, "hold", "100"])
        pods.wait_pending("third", "0/2 nodes are available.*cannot allocate all claims")
        pods.remove("second")
        assert node_of("third") == nodes[1], nodes
        say("%s: the first pod runs on %s, the second on %s, then the third" % (template, *nodes))
        pods.remove("first", "third")
        wait_until(lambda: not pods.leases() and not second.leases(), "the end of all leases")


def try_all(cluster, pods):
    wait_until(lambda: all_are_available(cluster), "the devices")
    say("gpurota-dra has published", ", ".join(sorted(all_devices(cluster))))
    wait_until(lambda: is_refused_elsewhere(cluster), "the policy")
    by_memory(cluster, pods)
    by_turns(cluster, pods)
    by_whole(cluster, pods)
    with_admin_access(cluster, pods)
    a_claim_that_kubelet_forgets(cluster, pods)
    a_new_node_object(cluster)
    on_two_nodes(cluster, pods)
    wait_until(lambda: not cluster.ask("GET", RESOURCES + "/resourceclaims")["items"],
               "the end of all claims")
    wait_until(lambda: not glob.glob("/var/run/cdi/*gpurota*"),
               "the end of all descriptions for containerd")
    say("no claim is left, and no description of one on the node")
    cluster.kubectl("delete", "daemonset", "gpurota-dra", "--namespace=gpurota")
    for node in (NODE, SECOND):
        wait_until(lambda node=node: not all_devices(cluster, node),
                   "kubelet to remove what the driver had published of " + node)
