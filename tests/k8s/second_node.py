"""A second node for cluster.sh, within the namespaces of the first: with namespaces, control groups
and a simulated machine of its own.

The node's folders have the same paths as on the first node, because pods name them; outside()
returns the paths at which the first node sees them.
"""

import glob
import os
import shutil
import subprocess

from control_plane import ADDRESS, SECOND, network
from real_node import PREFIX, Machine, ask_daemon, say, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
SIMULATED = os.environ["GPUROTA_SIM_DIR"]
OWN_ADDRESS = "10.254.0.2"
LINK = ("10.252.0.1", "10.252.0.2")
GROUP = "gpurota-node2"
UNSHARED = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation",
            "private")
ENTERED = ("--net", "--mount", "--pid", "--cgroup")
# A program that enters the namespaces stays in the first node's control groups until it joins those
# of the second node.
JOIN = """
for each in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do
  [ ! -e "$each" ] || echo $$ >"$each"
done
exec "$@"
"""
LEAVE = """
for each in $GROUPS_OF_NODE; do echo $$ >"$each/cgroup.procs"; done
exec unshare --cgroup "$@"
"""


def make_groups():
    """Makes a control group for the node, one in each hierarchy."""
    folders = []
    for file in glob.glob("/sys/fs/cgroup/cgroup.procs") or glob.glob(
        "/sys/fs/cgroup/*/cgroup.procs"):
        top = os.path.dirname(file)
        folder = os.path.join(top, GROUP)
        os.mkdir(folder)
        folders.append(folder)
        # A cpuset group of version 1 accepts no process before these files are written.
        if top.endswith("/cpuset"):
            for name in ("cpuset.cpus", "cpuset.mems"):
                shutil.copyfile(os.path.join(top, name), os.path.join(folder, name))
    return folders


def child_of(number):
    with open("/proc/%d/task/%d/children" % (number, number), encoding="ascii") as file:
        return "".join(file.read().split()[:1])


class SecondNode(Machine):
    def __init__(self, cluster):
        self.cluster = cluster
        os.mkdir(cluster.path(SECOND), 0o700)
        super().__init__(cluster.path(SECOND))
        self.write("cni/10-node.conflist", network("10.251.0.0/24"))
        self.places = [*os.environ["PLACES"].split(), SIMULATED]
        for place in self.places:
            os.makedirs(self.outside(place))
        shutil.copytree(cluster.path("sysctl"), self.path("sysctl"))
        # The driver of simulated GPUs (cluster.sh).
        shutil.copytree("/run/nvidia", self.outside("/run/nvidia"))

    def outside(self, path):
        return self.path("mounts" + path)

    def start(self):
        self.enter()
        self.start_containerd()
        self.import_image("gpurota.tar", self.cluster.folder)
        self.cluster.start_kubelet_of(self, SECOND, OWN_ADDRESS)
        wait_until(lambda: self.cluster.is_ready(SECOND), "the second node to be ready")
        for name in ("gpurotad", "gpurota-dra"):
            self.cluster.roll_out(name)
        say("the second node is ready")

    def enter(self):
        """Makes the namespaces; their first program is that of the simulated machine."""
        environment = dict(os.environ, FOLDER=self.folder, ADDRESSES=OWN_ADDRESS, OWN_GROUPS="1",
                           PLACES=" ".join(self.places), GROUPS_OF_NODE=" ".join(make_groups()))
        simulator = [os.path.join(PREFIX, "bin/gpurota-sim"), "--dir", SIMULATED,
                     self.cluster.path("machine.toml"), "--", "sleep", "infinity"]
        with open(self.path("machine.log"), "w", encoding="utf-8") as log:
            first = subprocess.Popen(
                ["bash", "-c", LEAVE, "leave", *UNSHARED, os.path.join(HERE, "inside_machine.sh"),
                 *simulator], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.processes["machine"] = first
        number = wait_until(lambda: child_of(first.pid), "the first program of the second node")
        wait_until(lambda: os.listdir(self.outside(SIMULATED)) or first.poll() is not None,
                   "the second simulated machine")
        assert first.poll() is None, self.log_of("machine")
        self.inside = ["nsenter", "--target", number, *ENTERED, "--", "bash", "-c", JOIN, "join"]
        self.connect(number)

    def connect(self, number):
        """Makes a network between the two nodes."""
        def ip(*words, inside=()):
            subprocess.run([*inside, "ip", *words], check=True)
        ip("link", "add", "second", "type", "veth", "peer", "name", "first", "netns", number)
        for name, address, inside in (("second", LINK[0], ()), ("first", LINK[1], self.inside)):
            ip("address", "add", address + "/30", "dev", name, inside=inside)
            ip("link", "set", name, "up", inside=inside)
        ip("route", "add", OWN_ADDRESS, "via", LINK[1], "src", ADDRESS)
        ip("route", "replace", "default", "via", LINK[0], "src", OWN_ADDRESS, inside=self.inside)

    def leases(self):
        """The leases, by the names of their pods."""
        status = ask_daemon(self.outside("/run/gpurota/control.sock"), "Status")
        return {lease["pod"]["name"]: lease for lease in status["leases"] if lease.get("pod")}
