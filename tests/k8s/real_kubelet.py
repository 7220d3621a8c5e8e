"""What kubelet.sh tries with a real kubelet: a pod that is refused beyond its memory, and then kubelet and the plugin restarted at random
under pods that come and go. At each step every device is allocatable, every pod that runs is held to its limit, and at the end no lease is
left.

    real_kubelet.py FOLDER ROUNDS SEED        as root, in namespaces of its own (kubelet.sh)
"""

import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import uuid

PREFIX, PROGRAM, BUILD, KUBELET = (os.environ[name] for name in ("E2E_PREFIX", "E2E_PROGRAM", "BUILD", "KUBELET"))
MEMORY = "gpurota.dev/memory"
UNITS = 14  # of two simulated GPUs of 8 GiB, less what the driver keeps
PATIENCE = 120


def wait_until(holds, what):
    deadline = time.monotonic() + PATIENCE
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain for " + what)
        time.sleep(0.1)


def image(path, tag, command, files, links):
    """A container's image as an archive that containerd imports: one layer, made without a registry."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("usr", "etc", "proc", "sys", "dev", "tmp", "run", "bin" if files else "usr"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for name, source in files.items():
            tar.add(source, name)
    config = {"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/bin:/bin"], "Cmd": command},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]}}
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]
    parts = {"layer.tar": layer.getvalue(), "config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}
    with tarfile.open(path, mode="w") as tar:
        for name, data in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


CONTAINERD = """
version = 2
root = "{folder}/ctd/root"
state = "{folder}/ctd/state"
oom_score = 0
[grpc]
  address = "{folder}/ctd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:test"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
"""


class Node:
    def __init__(self, folder):
        self.folder, self.pods, self.processes = folder, {}, {}
        for name in ("run", "state", "manifests", "cni", "ctd"):
            os.mkdir(self.path(name), 0o700)
        self.write("gpurota.toml", "")
        self.write("containerd.toml", CONTAINERD.format(folder=folder))
        self.write("cni/10-lo.conflist", '{"cniVersion":"0.4.0","name":"node","plugins":[{"type":"loopback"}]}')

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def spawn(self, name, *command):
        with open(self.path(name + ".log"), "a", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, name, how):
        self.processes[name].send_signal(how)
        self.processes[name].wait()

    # Its programs.

    def start_containerd(self):
        self.spawn("containerd", "containerd", "-c", self.path("containerd.toml"))
        ctr = ["ctr", "-a", self.path("ctd.sock"), "-n", "k8s.io"]
        wait_until(lambda: subprocess.run(ctr + ["version"], capture_output=True, check=False).returncode == 0, "containerd")
        image(self.path("pause.tar"), "localhost/pause:test", ["/bin/busybox", "sleep", "2147483647"], {"bin/busybox": shutil.which("busybox")}, {})
        image(self.path("usr.tar"), "localhost/usr:test", ["/bin/sh"], {}, {name: "usr/" + name for name in ("bin", "lib", "lib64", "sbin")})
        for name in ("pause.tar", "usr.tar"):
            subprocess.run(ctr + ["images", "import", self.path(name)], check=True, capture_output=True)

    def start_daemon(self):
        self.spawn("gpurotad", os.path.join(PREFIX, "sbin/gpurotad"), "--runtime-dir", self.path("run"), "--state-dir", self.path("state"),
                   "--config", self.path("gpurota.toml"))
        wait_until(lambda: os.path.exists(self.path("run/control.sock")), "gpurotad")

    def start_plugin(self):
        self.spawn("plugin", os.path.join(PREFIX, "sbin/gpurota-device-plugin"), "--runtime-dir", self.path("run"), "--state-dir",
                   self.path("plugin"), "--interval", "500", "--log-level", "debug")

    def start_kubelet(self):
        self.spawn("kubelet", KUBELET, "--container-runtime=remote", "--container-runtime-endpoint=unix://" + self.path("ctd.sock"),
                   "--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki", "--pod-manifest-path=" + self.path("manifests"),
                   "--file-check-frequency=1s", "--sync-frequency=2s", "--node-status-update-frequency=2s", "--address=127.0.0.1",
                   "--healthz-bind-address=127.0.0.1", "--read-only-port=10255", "--hostname-override=node1", "--node-ip=10.254.0.1",
                   "--cgroup-driver=cgroupfs", "--cgroup-root=/", "--runtime-cgroups=/", "--kubelet-cgroups=/", "--oom-score-adj=0",
                   "--fail-swap-on=false", "--enforce-node-allocatable=", "--make-iptables-util-chains=false", "--eviction-hard=",
                   "--image-gc-high-threshold=100", "--v=2")

    # What they say.

    def call(self, method, **parameters):
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(self.path("run/control.sock"))
            daemon.sendall(json.dumps({"method": "dev.gpurota." + method, "parameters": parameters}).encode() + b"\0")
            answer = b""
            while not answer.endswith(b"\0"):
                answer += daemon.recv(65536)
        return json.loads(answer[:-1])["parameters"]

    def leases(self):
        return self.call("Status")["leases"]

    def allocatable(self):
        """Healthy devices, as kubelet has stored them."""
        try:
            with open("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", encoding="utf-8") as file:
                registered = json.load(file)["Data"]["RegisteredDevices"] or {}
        except (OSError, ValueError):
            return {}
        return {name: len(devices or []) for name, devices in registered.items()}

    def registered(self):
        """Whether this kubelet has all devices of this plugin: what it has stored since the last of the two has started."""
        try:
            stored = os.stat("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint").st_mtime
        except OSError:
            return False
        return (stored > self.restarted and self.registrations() >= self.registrations_before + 3
                and self.allocatable().get(MEMORY) == UNITS)

    def registrations(self):
        with open(self.path("plugin.log"), encoding="utf-8") as file:
            return file.read().count("kubelet has registered")

    def restarts(self):
        self.restarted = time.time()
        self.registrations_before = self.registrations() if os.path.exists(self.path("plugin.log")) else 0

    def seen_pods(self):
        try:
            with urllib.request.urlopen("http://127.0.0.1:10255/pods", timeout=10) as answer:
                return {pod["metadata"]["name"].removesuffix("-node1"): pod for pod in json.load(answer)["items"] or []}
        except (urllib.error.URLError, OSError, ValueError):
            return {}

    # Pods.

    def add(self, name, units):
        identity = str(uuid.uuid4())
        mounts = {"usr": "/usr", "build": BUILD, "machine": os.environ["GPUROTA_SIM_DIR"]}
        container = {
            "name": "main", "image": "localhost/usr:test", "imagePullPolicy": "Never", "command": [PROGRAM, "greedy", "64"],
            "env": [{"name": each, "value": os.environ[each]} for each in ("GPUROTA_SIM_DIR", "LD_LIBRARY_PATH")],
            "volumeMounts": [{"name": each, "mountPath": path, "readOnly": each != "machine"} for each, path in mounts.items()],
            "resources": {"limits": {MEMORY: units}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": identity},
               "spec": {"hostNetwork": True, "restartPolicy": "Always", "terminationGracePeriodSeconds": 1, "containers": [container],
                        "volumes": [{"name": each, "hostPath": {"path": path}} for each, path in mounts.items()]}}
        self.write("manifests/%s.yaml" % name, json.dumps(pod))
        self.pods[name] = (identity, units)

    def remove(self, name):
        os.unlink(self.path("manifests/%s.yaml" % name))
        del self.pods[name]

    def output_of(self, name):
        identity, _ = self.pods[name]
        folder = "/var/log/pods/default_%s-node1_%s/main" % (name, identity)
        text = ""
        for each in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, each), encoding="utf-8") as file:
                text += file.read()
        return text

    def is_held(self, name):
        """Whether its program was refused where its limit is. Anything else it may have had is an error."""
        refused = re.findall(r"refused at (\d+) MiB", self.output_of(name))
        _, units = self.pods[name]
        for each in refused:
            assert (units - 1) * 1024 - 256 < int(each) <= units * 1024, "%s with %d GiB had %s MiB" % (name, units, each)
        return bool(refused)

    def has_failed(self, name):
        pod = self.seen_pods().get(name)
        return pod is not None and pod["status"].get("phase") == "Failed"


def say(*words):
    print("[%6.1f s]" % (time.monotonic() - BEGIN), *words, flush=True)


def first_pod(node):
    node.add("first", 2)
    wait_until(lambda: node.is_held("first"), "the first pod to be refused")
    say("a pod with 2 GiB:", re.search("refused at.*", node.output_of("first")).group())
    lease, = node.leases()
    assert lease["kind"] == "pod" and lease["gpus"][0]["limit_bytes"] == 2 << 30, lease
    wait_until(lambda: node.leases()[0].get("pod"), "the name of the pod")
    named = node.leases()[0]["pod"]
    assert named["namespace"] == "default" and named["container"] == "main", named
    say("its lease is", lease["lease_id"], "of", "/".join((named["namespace"], named["name"], named["container"])))
    processes = wait_until(lambda: [each for each in node.call("ListProcesses")["processes"] if each.get("container")], "its process")
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
        # One that comes while kubelet has no devices is refused by it, and is to run without them never.
        if wait_until(lambda name=name: node.is_held(name) or node.has_failed(name), "pod %s to be held to its limit" % name):
            if node.has_failed(name):
                assert not node.output_of(name), "a pod that was refused has run"
                node.refused += 1
                node.remove(name)


def main(folder, rounds, seed):
    print("seed %d, %d rounds" % (seed, rounds), flush=True)
    chance = random.Random(seed)
    node = Node(folder)
    node.refused = 0
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
        # Often the next thing happens while this is still going on.
        if chance.random() < 0.7:
            settle(node)
            say("round %d, %s: %d pods, %d leases" % (number + 1, action, len(node.pods), len(node.leases())))
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


BEGIN = time.monotonic()
main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
