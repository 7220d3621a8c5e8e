"""The common part of the tests of kubelet's plugins. Each case has its own gpurotad, fake kubelet
and plugin."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from fake_kubelet import PATIENCE, FakeKubelet, wait_until

PREFIX, PROGRAM = os.environ["E2E_PREFIX"], os.environ["E2E_PROGRAM"]
GPU, MEMORY, TURN = "gpurota.dev/gpu", "gpurota.dev/memory", "gpurota.dev/turn"


@contextlib.contextmanager
def pod_group(uid):
    """Makes a control group as a kubelet with a cgroupRoot does for each pod. The case is skipped
    where none can be made."""
    with open("/proc/mounts", encoding="ascii") as file:
        mounts = [line.split()[:4] for line in file]
    for place in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd",
                  "/sys/fs/cgroup/memory"):
        if not any(mount[1] == place and mount[2].startswith("cgroup") for mount in mounts):
            continue
        top = "%s/gpurota-test-%d" % (place, os.getpid())
        pod = top + "/kubepods/pod" + uid
        try:
            os.makedirs(pod)
        except OSError:
            continue
        try:
            yield pod
        finally:
            for folder in (pod, top + "/kubepods", top):
                if os.path.isdir(folder):
                    os.rmdir(folder)
        return
    raise unittest.SkipTest("no control group can be made here")


class KubeletCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gpurota-k8s.")
        self.addCleanup(self.clean_up)
        for name in ("run", "state"):
            os.mkdir(os.path.join(self.folder, name), 0o700)
        self.write("gpurota.toml", "")
        self.environment = dict(os.environ, GPUROTA_RUNTIME_DIR=self.path("run"))
        self.daemon = self.plugin = self.kubelet = None
        self.programs = []
        self.start_daemon()
        self.kubelet = self.make_kubelet()
        self.kubelet.run()

    def make_kubelet(self):
        return FakeKubelet(self.path("kubelet"))

    def clean_up(self):
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.wait()
            program.stdout.close()
        for each in (self.plugin, self.daemon):
            if each and each.poll() is None:
                each.send_signal(signal.SIGCONT)
                each.terminate()
                each.wait(PATIENCE)
        if self.kubelet:
            self.kubelet.end()
        if self.has_failed():
            for name in ("gpurotad.log", "plugin.log"):
                if os.path.exists(self.path(name)):
                    with open(self.path(name), encoding="utf-8") as file:
                        print("--- %s\n%s" % (name, file.read()[-6000:]))
        shutil.rmtree(self.folder)

    def has_failed(self):
        result = self._outcome.result
        return (any(case is self for case, _ in result.failures + result.errors)
                or getattr(self._outcome, "success", True) is False)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, name, log, *arguments):
        with open(self.path(log), "a", encoding="utf-8") as file:
            return subprocess.Popen([os.path.join(PREFIX, "sbin", name), *arguments],
                                    env=self.environment, stdout=file, stderr=file,
                                    stdin=subprocess.DEVNULL)

    def start_daemon(self):
        self.daemon = self.start("gpurotad", "gpurotad.log", "--runtime-dir", self.path("run"),
                                 "--state-dir", self.path("state"), "--config",
                                 self.path("gpurota.toml"))
        wait_until(self.answers, "gpurotad")

    def start_plugin(self, *arguments):
        self.plugin = self.start("gpurota-device-plugin", "plugin.log", "--kubelet-dir",
                                 self.path("kubelet"), "--state-dir", self.path("plugin"),
                                 "--interval", "100", "--log-level", "debug", *arguments)
        for resource in (GPU, MEMORY, TURN):
            self.kubelet.wait_for(resource, lambda devices: len(devices) > 0)

    def stop_plugin(self, how=signal.SIGTERM):
        self.plugin.send_signal(how)
        return self.plugin.wait(PATIENCE)

    def gpurota(self, *words, check=True):
        done = subprocess.run([os.path.join(PREFIX, "bin", "gpurota"), *words],
                              env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        if check:
            self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout if done.returncode == 0 else None

    def call(self, method, **parameters):
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.settimeout(PATIENCE)
            daemon.connect(self.path("run/control.sock"))
            daemon.sendall(json.dumps({"method": "dev.gpurota." + method,
                                       "parameters": parameters}).encode() + b"\0")
            answer = b""
            while not answer.endswith(b"\0"):
                part = daemon.recv(65536)
                if not part:
                    raise ConnectionError("gpurotad has hung up")
                answer += part
        return json.loads(answer[:-1])

    def answers(self):
        try:
            return "parameters" in self.call("GetInfo")
        except OSError:
            return False

    def plugin_says(self, words):
        with open(self.path("plugin.log"), encoding="utf-8") as file:
            return words in file.read()

    def leases(self):
        return self.call("Status")["parameters"]["leases"]

    def wait_for_leases(self, holds):
        wait_until(lambda: holds(self.leases()), "the leases")

    def run_in(self, container, *command, pre_start=True):
        begin = self.kubelet.start if pre_start else self.kubelet.execute
        program = begin(container, [PROGRAM, *command])
        self.programs.append(program)
        return program

    def output_of(self, container, *command):
        output, _ = self.run_in(container, *command).communicate(timeout=PATIENCE)
        return output

    @staticmethod
    def wait_for_line(program, words):
        line = program.stdout.readline()
        while words not in line:
            assert line, "it ended without saying " + words
            line = program.stdout.readline()
        return line
