"""gpurotad as in a pod, with the files of its image and the mounts of the chart, in a root of its
own. Claims reach the daemon through gpurota-dra."""

import glob
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

from dra_case import DraCase
from fake_kubelet import PATIENCE, wait_until
from kubelet_case import PREFIX, PROGRAM

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging",
                    "kubernetes", "make_image.py")
SIMULATED = os.path.join(os.environ["LD_LIBRARY_PATH"].split(":")[0], "libnvidia-ml.so.1")
IMAGE = tempfile.TemporaryDirectory()


def setUpModule():
    if os.getuid() != 0:
        raise unittest.SkipTest("needs root")
    programs = []
    library, = glob.glob(os.path.join(PREFIX, "lib*/**/libgpurota.so"), recursive=True)
    for path in (os.path.join(PREFIX, "sbin/gpurotad"), os.path.join(PREFIX, "bin/gpurota"),
                 library):
        programs.append(os.path.join(IMAGE.name, os.path.basename(path)))
        subprocess.run(["strip", "-o", programs[-1], path], check=True)
    subprocess.run([sys.executable, "-B", TOOL, os.path.join(IMAGE.name, "image.tar"),
                    "localhost/gpurota-kubernetes:1.2.3", *programs],
                   check=True, stdout=subprocess.DEVNULL)


def tearDownModule():
    IMAGE.cleanup()


def unpack(folder):
    layers = os.path.join(folder, "layers")
    with tarfile.open(os.path.join(IMAGE.name, "image.tar")) as tar:
        tar.extractall(layers)
    for folder_of_blobs, _, files in os.walk(layers):
        for name in files:
            try:
                with tarfile.open(os.path.join(folder_of_blobs, name), "r:gz") as layer:
                    layer.extractall(os.path.join(folder, "root"))
            except tarfile.ReadError:
                continue


class DaemonInAPod(DraCase):
    def setUp(self):
        self.machine = None
        super().setUp()

    def prepare_machine(self):
        """Makes the machine's folders that the chart mounts, and puts the driver where
        distributions have it."""
        self.machine = self.path("machine")
        folder = os.path.join(self.machine, "usr/lib64")
        os.makedirs(folder)
        with open(SIMULATED, "rb") as file, open(os.path.join(folder, "libnvidia-ml.so.1"),
                                                 "wb") as copy:
            copy.write(file.read())
        for name in ("library", "config"):
            os.mkdir(self.path(name))
        unpack(self.folder)

    def begin_daemon(self, more_mounts=""):
        same = [self.path("run"), self.path("library"), os.environ["GPUROTA_SIM_DIR"], "/proc",
                "/dev"]
        mounts = [(each, each) for each in same]
        mounts += [(self.path("state"), "/var/lib/gpurota"), (self.path("config"), "/etc/gpurota"),
                   (self.machine, "/host")]
        script = "set -e; mount --make-rprivate /\n"
        for outside, inside in mounts:
            script += 'mkdir -p "$0%s"; mount --rbind "%s" "$0%s"\n' % (inside, outside, inside)
        script += more_mounts
        script += 'mount --rbind "$0" "$0"; mount -o remount,bind,ro "$0"\nexec chroot "$0" "$@"'
        with open(self.path("gpurotad.log"), "a", encoding="utf-8") as log:
            return subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", script, self.path("root"), "/usr/sbin/gpurotad",
                 "--runtime-dir=" + self.path("run"),
                 "--publish-library=" + self.path("library"), "--driver-root=/host"],
                env={"PATH": os.environ["PATH"], "GPUROTA_SIM_DIR": os.environ["GPUROTA_SIM_DIR"]},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start_daemon(self):
        if not self.machine:
            self.prepare_machine()
        self.daemon = self.begin_daemon()
        wait_until(self.answers, "gpurotad")

    def library(self):
        return os.path.join(self.path("library"), "libgpurota.so")

    def run_greedy(self):
        words = [os.path.join(PREFIX, "bin", "gpurota"), "run", "--memory", "1G", "--", PROGRAM,
                 "greedy", "64"]
        self.programs.append(subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                              text=True))
        return self.wait_for_line(self.programs[-1], "refused at")

    def test_a_claim_has_its_memory_and_the_library_that_is_on_the_machine(self):
        self.start_plugin()
        prepared = self.prepared(self.allocate("a", "2Gi"))
        name, = self.specs()
        with open(os.path.join(self.path("cdi"), name), encoding="utf-8") as file:
            self.assertIn('"%s"' % self.library(), file.read())
        program = self.execute(prepared, "greedy", "64")
        self.assertRegex(self.wait_for_line(program, "refused at"),
                         "refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY")

    def test_a_program_of_the_machine_is_held_to_its_limit(self):
        self.assertRegex(self.run_greedy(), "refused at [89][0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY")

    def test_the_next_pod_goes_on_with_what_is_there(self):
        self.run_greedy()
        lease, = self.lease_ids()
        before = os.stat(self.library()).st_ino
        for how in (signal.SIGTERM, signal.SIGKILL):
            self.daemon.send_signal(how)
            self.daemon.wait(PATIENCE)
            self.start_daemon()
            self.assertEqual(self.lease_ids(), [lease])
            wait_until(lambda: [each
                                for each in self.call("ListProcesses")["parameters"]["processes"]
                                if each["tenant"]], "the program")
        self.assertEqual(os.stat(self.library()).st_ino, before, "an equal library is left alone")

    def test_a_second_one_leaves_the_library_alone_and_ends(self):
        with open(self.library(), "rb") as file:
            before = file.read()
        with open(os.path.join(self.path("root"), "usr/lib/gpurota/libgpurota.so"), "ab") as file:
            file.write(b"newer")
        self.assertNotEqual(self.begin_daemon().wait(PATIENCE), 0)
        with open(self.library(), "rb") as file:
            self.assertEqual(file.read(), before)

    def test_a_folder_that_nothing_can_be_loaded_from_is_refused(self):
        self.daemon.terminate()
        self.daemon.wait(PATIENCE)
        refused = self.begin_daemon('mount -o remount,bind,noexec "$0%s"\n' % self.path("library"))
        self.assertNotEqual(refused.wait(PATIENCE), 0)
        with open(self.path("gpurotad.log"), encoding="utf-8") as file:
            self.assertIn("mounted noexec", file.read())

    def test_it_has_no_jobs_and_says_so(self):
        done = subprocess.run([os.path.join(PREFIX, "bin", "gpurota"), "job", "add", "x",
                               "--memory", "1G", "--", "true"], env=self.environment,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("gpurota-keeper is not beside it", done.stdout)


if __name__ == "__main__":
    unittest.main()
