"""Pods of cluster.sh, through the API server and the scheduler, and the leases of these pods."""

import glob
import os
import re
import signal

from control_plane import NODE
from real_node import PROGRAM, ask_daemon, is_refused_beyond, logged, make_pod, say, wait_until

PODS = "/api/v1/namespaces/default/pods"
GREEDY = [PROGRAM, "greedy", "64"]
COMPUTE = [PROGRAM, "compute", "200", "3"]
# The container stays, and so does its lease.
COMPUTE_AND_STAY = ["/bin/sh", "-c", "%s; exec sleep infinity" % " ".join(COMPUTE)]


class Pods:
    def __init__(self, cluster):
        self.cluster, self.sizes, self.logs = cluster, {}, ["/var/log/pods"]  # of each node

    def add(self, name, resources, command, gib=None, **more):
        """Adds a pod. `gib` is the limit that its program must see."""
        self.cluster.ask("POST", PODS, make_pod(name, command, resources, **more))
        self.sizes[name] = gib

    def find(self, name):
        return self.cluster.find(PODS + "/" + name)

    def remove(self, *names):
        for name in names:
            self.cluster.ask("DELETE", PODS + "/" + name)
        for name in names:
            wait_until(lambda name=name: not self.find(name), "the end of pod " + name)
            del self.sizes[name]

    def output_of(self, name):
        found = self.find(name)
        return ("".join(logged(name, found["metadata"]["uid"], logs) for logs in self.logs) if found
                else "")

    def is_held(self, name):
        return is_refused_beyond(self.sizes[name], self.output_of(name))

    def wait_held(self, *names):
        for name in names:
            wait_until(lambda name=name: self.is_held(name),
                       "pod %s to be refused more than its limit" % name)
            wait_until(lambda name=name: self.find(name)["status"]["phase"] == "Running",
                       "pod %s to be known to run" % name)
            say("pod %s:" % name, re.search("refused at.*", self.output_of(name)).group())

    def wait_pending(self, name, words):
        """Waits until the scheduler gives a reason with these words for why the pod does not
        run."""
        def reason():
            status = self.find(name)["status"]
            assert status["phase"] == "Pending", "pod %s is %s" % (name, status["phase"])
            messages = [each.get("message", "") for each in status.get("conditions", [])
                        if each["type"] == "PodScheduled" and each["status"] == "False"]
            return [each for each in messages if re.search(words, each)]
        message, = wait_until(reason, "'%s' as the scheduler's reason for pod %s" % (words, name))
        assert not self.output_of(name)
        say("pod %s is Pending: %s" % (name, message))

    def wait_computed(self, *names):
        """Waits until the programs that compute have reported their end, without a wrong byte."""
        for name in names:
            wait_until(lambda name=name: "done: " in self.output_of(name),
                       "the end of pod %s's program" % name)
            output = self.output_of(name)
            assert re.search("done: [0-9]+ rounds, 0 wrong", output), output
            say("pod %s:" % name, re.search("done:.*", output).group())

    def has_event(self, name, reason):
        """Whether the pod has this event, as `kubectl describe pod` would show it."""
        identity = self.find(name)["metadata"]["uid"]
        return [each["message"]
                for each in self.cluster.ask("GET", "/api/v1/namespaces/default/events")["items"]
                if each["reason"] == reason and each["involvedObject"].get("uid") == identity]

    def starts_of(self, name):
        return [each["restartCount"] for each in self.find(name)["status"]["containerStatuses"]]

    # Calls of the daemon.

    @staticmethod
    def call(method):
        return ask_daemon("/run/gpurota/control.sock", method)

    def leases(self):
        """The leases by the names of their pods. A lease without a pod's name yet is listed by its
        number."""
        return {(lease.get("pod") or {}).get("name", lease["lease_id"]): lease
                for lease in self.call("Status")["leases"]}

    def in_turns(self, add, names):
        """Runs several programs on one GPU at the same time; none of them may see a byte of
        another."""
        for name in names:
            add(name, COMPUTE_AND_STAY)
        self.wait_computed(*names)
        self.wait_leases(*names)
        shares = {lease["share"] for lease in self.leases().values()}
        assert shares == {"swap"}, shares
        self.remove(*names)
        self.wait_leases()

    def wait_leases(self, *names):
        wait_until(lambda: set(self.leases()) == set(names),
                   "leases of %s (%s)" % (list(names), list(self.leases())))

    def is_served(self):
        try:
            return self.call("GetInfo")
        except (OSError, ConnectionError):
            return None


def two_and_a_third(pods, add, why, restarts):
    """`add(NAME)` adds a pod with somewhat more than a third of the GPU, so that a third pod waits.
    `restarts()` makes the Restarts meanwhile."""
    add("first")
    add("second")
    pods.wait_held("first", "second")
    pods.wait_leases("first", "second")
    assert all(lease["kind"] == "pod" and len(lease["gpus"]) == 1
               for lease in pods.leases().values()), pods.leases()
    add("third")
    pods.wait_pending("third", why)
    everything = restarts()
    everything.kill_each()
    everything.update_each()
    assert set(pods.leases()) == {"first", "second"}, pods.leases()
    pods.remove("first")
    pods.wait_held("third")
    pods.wait_leases("second", "third")
    pods.remove("second", "third")
    pods.wait_leases()
    say("the pods are gone, and so are their leases")


def a_released_lease(pods, add):
    """Releasing a pod's lease ends the programs of its container. kubelet starts the container
    again with another lease, and the pod gets an event."""
    add("released")
    pods.wait_held("released")
    pods.wait_leases("released")
    before = pods.leases()["released"]["lease_id"]
    pods.cluster.gpurota("release", before)
    wait_until(lambda: pods.starts_of("released") > [0], "the container's next start")
    wait_until(lambda: pods.leases().get("released", {}).get("lease_id", before) != before,
               "the next lease")
    message, *_ = wait_until(lambda: pods.has_event("released", "GpuLeaseEnded"),
                             "the event of the pod")
    say("pod released has been told:", message)
    pods.remove("released")
    pods.wait_leases()


def processes_of(program):
    """The processes of a program, as numbered in this machine's namespace, which shows those of all
    containers."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % number, "rb") as file:
                if file.read().split(b"\0")[0] == program.encode():
                    found.append(int(number))
        except OSError:
            continue
    return found


def registrations(plugin):
    """The log lines, with times, that gpurota's plugin or driver has written when kubelet
    registered it. Logs of removed pods are missing."""
    found = set()
    for path in glob.glob("/var/log/pods/gpurota_%s-*/*/*.log" % plugin):
        with open(path, encoding="utf-8") as file:
            found.update(line for line in file if "kubelet has registered" in line)
    return found


class Restarts:
    """Restarts `plugin`, gpurotad and kubelet while pods run: the pods must keep their leases, and
    no container may be started again. kubelet registers `plugin` with `times` calls."""

    def __init__(self, pods, plugin, times, settled):
        self.pods, self.cluster, self.plugin, self.times, self.settled = (
            pods, pods.cluster, plugin, times, settled)
        self.running = [name for name in pods.sizes
                        if pods.find(name)["status"]["phase"] == "Running"]
        assert self.running, pods.sizes
        self.before = self.state()

    def state(self):
        leases = self.pods.leases()
        return {name: (leases[name]["lease_id"], self.pods.starts_of(name))
                for name in self.running}

    def check(self, what, known, times):
        if times:
            wait_until(lambda: len(registrations(self.plugin) - known) >= times,
                       "kubelet to register %s after %s" % (self.plugin, what))
        wait_until(self.pods.is_served, "gpurotad after " + what)
        wait_until(self.cluster.is_ready, "the node after " + what)
        wait_until(self.settled, "the GPUs after " + what)
        after = self.state()
        assert after == self.before, (what, self.before, after)
        say("%s: %d pods have the leases they had" % (what, len(self.running)))

    def kill_each(self):
        for program in (self.plugin, "gpurotad"):
            path, known = "/usr/sbin/" + program, registrations(self.plugin)
            old = set(processes_of(path))
            assert old, path + " does not run"
            for each in old:
                os.kill(each, signal.SIGKILL)
            wait_until(lambda path=path, old=old: set(processes_of(path)) - old,
                       "the next " + program)
            self.check("%s was killed" % program, known,
                       self.times if program == self.plugin else 0)
        known = registrations(self.plugin)
        self.cluster.stop("kubelet", signal.SIGKILL)
        self.cluster.start_kubelet()
        self.check("kubelet was killed", known, self.times)

    def update_each(self):
        """Replaces each pod of the DaemonSets, as an update to a new version does."""
        for name in (self.plugin, "gpurotad"):
            known = registrations(self.plugin)
            self.cluster.kubectl("rollout", "restart", "daemonset/" + name, "--namespace=gpurota")
            self.cluster.roll_out(name)
            self.check("%s was updated" % name, known, self.times if name == self.plugin else 0)


def allocatable(cluster):
    return cluster.ask("GET", "/api/v1/nodes/" + NODE)["status"].get("allocatable", {})

