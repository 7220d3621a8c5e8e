"""The common part of the tests with a real kubelet (kubelet.sh, cluster.sh): a folder with the
node's programs and their logs, containerd with images that are made here, and pods whose programs
are refused beyond their memory.
"""

import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import time

PREFIX, PROGRAM, BUILD = (os.environ[name] for name in ("E2E_PREFIX", "E2E_PROGRAM", "BUILD"))
MEMORY = "gpurota.dev/memory"
PATIENCE = 120
BEGIN = time.monotonic()


def say(*words, sep=" "):
    print("[%6.1f s] " % (time.monotonic() - BEGIN) + sep.join(map(str, words)), flush=True)


def wait_until(holds, what, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain for " + what)
        time.sleep(0.1)


def image(path, tag, command, files, links):
    """Makes a container image as an archive that containerd imports. The image has one layer, and
    no registry is needed."""
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
    config = {"architecture": "amd64", "os": "linux",
              "config": {"Env": ["PATH=/usr/bin:/bin"], "Cmd": command},
              "rootfs": {"type": "layers",
                         "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]}}
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]
    parts = {"layer.tar": layer.getvalue(), "config.json": json.dumps(config).encode(),
             "manifest.json": json.dumps(manifest).encode()}
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
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
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


class Machine:
    """The node's folder and programs."""

    def __init__(self, folder):
        self.folder, self.processes, self.inside = folder, {}, []
        for name in ("cni", "ctd"):
            os.mkdir(self.path(name), 0o700)
        self.write("containerd.toml", CONTAINERD.format(folder=folder))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def log_of(self, name):
        with open(self.path(name + ".log"), encoding="utf-8") as file:
            return file.read()

    def spawn(self, name, *command):
        with open(self.path(name + ".log"), "a", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen([*self.inside, *command], stdout=log,
                                                    stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, name, how):
        self.processes[name].send_signal(how)
        self.processes[name].wait()

    def start_containerd(self):
        self.spawn("containerd", "containerd", "-c", self.path("containerd.toml"))
        wait_until(lambda: subprocess.run(self.ctr("version"), capture_output=True,
                                          check=False).returncode == 0, "containerd")
        busybox = {"bin/busybox": os.path.realpath(shutil.which("busybox"))}
        image(self.path("pause.tar"), "localhost/pause:test",
              ["/bin/busybox", "sleep", "2147483647"], busybox, {})
        image(self.path("usr.tar"), "localhost/usr:test", ["/bin/sh"], {},
              {name: "usr/" + name for name in ("bin", "lib", "lib64", "sbin")})
        for name in ("pause.tar", "usr.tar"):
            self.import_image(name)

    def ctr(self, *words):
        return ["ctr", "-a", self.path("ctd.sock"), "-n", "k8s.io", *words]

    def import_image(self, name, folder=None):
        path = os.path.join(folder or self.folder, name)
        subprocess.run(self.ctr("images", "import", path), check=True, capture_output=True)


def ask_daemon(path, method, **parameters):
    """Calls gpurotad at this socket; returns its answer."""
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(path)
        daemon.sendall(json.dumps({"method": "dev.gpurota." + method,
                                   "parameters": parameters}).encode() + b"\0")
        answer = b""
        while not answer.endswith(b"\0"):
            part = daemon.recv(65536)
            if not part:
                raise ConnectionError("gpurotad has hung up")
            answer += part
    return json.loads(answer[:-1])["parameters"]


def make_pod(name, command, resources, restart="Always", **more):
    """A pod on the node's network, whose program has the machine's /usr, the build and the
    simulated machine."""
    mounts = {"usr": "/usr", "build": BUILD, "machine": os.environ["GPUROTA_SIM_DIR"]}
    container = {
        "name": "main", "image": "localhost/usr:test", "imagePullPolicy": "Never",
        "command": command,
        "env": [{"name": each, "value": os.environ[each]}
                for each in ("GPUROTA_SIM_DIR", "LD_LIBRARY_PATH")],
        "volumeMounts": [{"name": each, "mountPath": path, "readOnly": each != "machine"}
                         for each, path in mounts.items()],
        "resources": resources}
    spec = {"hostNetwork": True, "restartPolicy": restart, "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": each, "hostPath": {"path": path}}
                        for each, path in mounts.items()]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": dict(spec, **more)}


def logged(name, identity, logs="/var/log/pods"):
    """The output of a pod's program, in all of its starts."""
    folder = "%s/default_%s_%s/main" % (logs, name, identity)
    text = ""
    for each in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, each), encoding="utf-8") as file:
            text += file.read()
    return text


def is_refused_beyond(gib, output):
    """Whether a greedy program was refused at its limit. Raises an error if it was refused
    elsewhere."""
    refused = re.findall(r"refused at (\d+) MiB", output)
    for each in refused:
        assert (gib - 1) * 1024 - 256 < int(
            each) <= gib * 1024, "a program with %d GiB had %s MiB" % (gib, each)
    return bool(refused)
