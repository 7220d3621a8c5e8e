"""Tests of leases: waiting, the commands in them, and their ends."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, List, Optional
from unittest import mock

from fake_daemon import LEASE, REQUEST, TestCase, error, more

import gpurota
from gpurota import leases
from gpurota.leases import LEASE_VARIABLES, check_preload, merged_environment

PYTHON = [sys.executable, "-I", "-S", "-c"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Waiting(TestCase):
    def waits(self, *positions: int, then: Any = None) -> None:
        """Sets the answers: the first Enqueue gets these positions and `then`; later ones get the
        lease."""
        asked: List[str] = []

        def handler(method: str, parameters: Any) -> Optional[list]:
            if method != "Enqueue":
                return None
            asked.append(parameters["ticket"])
            waiting = [more(request={**REQUEST, "position": each}, environment=[])
                       for each in positions]
            return [*waiting, then] if len(asked) == 1 else None

        self.daemon.handler = handler

    def test_the_callback_hears_every_change(self) -> None:
        self.waits(3, 2, 1, then={"lease": LEASE, "environment": []})
        heard = []
        with gpurota.lease(on_wait=lambda request: heard.append(request.position)) as lease:
            self.assertEqual(lease.id, "L1")
        self.assertEqual(heard, [3, 2, 1])

    def test_a_terminal_gets_a_line_for_each_and_a_file_none(self) -> None:
        for stream, lines in ((Terminal(), 2), (io.StringIO(), 0)):
            self.waits(2, 2, 1, then={"lease": LEASE, "environment": []})
            with contextlib.redirect_stderr(stream), gpurota.lease():
                pass
            self.assertEqual(stream.getvalue().count("gpurota: waiting as R1, position "), lines)

    def test_a_restart_of_the_daemon_keeps_the_place_by_the_ticket(self) -> None:
        self.waits(2, then=None)
        with gpurota.lease(on_wait=lambda _: None):
            pass
        tickets = [each["parameters"]["ticket"] for each in self.daemon.calls
                   if each["method"] == "Enqueue"]
        self.assertEqual(len(tickets), 2)
        self.assertEqual(len(set(tickets)), 1)

    def test_one_that_hangs_up_on_all_who_come_is_not_asked_for_ever(self) -> None:
        self.answer(Enqueue=[None])
        with mock.patch("gpurota.waiting.RECONNECT_EVERY", 0), self.assertRaises(gpurota.NoDaemon):
            gpurota.lease()
        self.assertEqual(self.daemon.methods(), ["Enqueue"] * 4)

    def test_a_wait_that_is_over_says_what_it_waited_for_and_leaves_the_queue(self) -> None:
        self.answer(Enqueue=[more(request=REQUEST, environment=[])])
        with self.assertRaisesRegex(gpurota.NoGpu,
                                    r"gave up after 0.1 s: waits for GPU 1: bob's program \(L3\) "
                                    r"has no time limit$"):
            gpurota.lease(wait=0.1, on_wait=lambda _: None)
        self.assertTrue(self.daemon.hung_up.wait(10))

    def test_control_c_leaves_the_queue(self) -> None:
        self.answer(Enqueue=[more(request=REQUEST, environment=[])])
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            gpurota.lease(on_wait=lambda _: None)
        self.assertTrue(self.daemon.hung_up.wait(10))

    def test_a_callback_that_raises_leaves_the_queue(self) -> None:
        self.answer(Enqueue=[more(request=REQUEST, environment=[])])
        with self.assertRaises(ZeroDivisionError):
            gpurota.lease(on_wait=lambda _: 1 / 0)
        self.assertTrue(self.daemon.hung_up.wait(10))

    def test_a_request_that_somebody_cancels_is_cancelled(self) -> None:
        self.waits(1, then=error("dev.gpurota.NotFound", message="it was cancelled by bob"))
        with self.assertRaisesRegex(gpurota.Cancelled, "by bob"):
            gpurota.lease(on_wait=lambda _: None)

    def test_without_waiting_the_daemon_is_asked_once(self) -> None:
        self.answer(Acquire=[error("dev.gpurota.NoGpu", message="0 of 1", free=0, total=1)])
        with self.assertRaises(gpurota.NoGpu):
            gpurota.lease(wait=0)
        self.assertEqual(self.daemon.methods(), ["Acquire"])


class Asking(TestCase):
    def test_a_lease_is_asked_for_as_it_was_wished(self) -> None:
        with gpurota.lease("8G", name="train7", as_name="ann", gpu_type="h100", near="L4",
                           until="+2h") as lease:
            self.assertEqual(lease.id, "L1")
        request = next(each["parameters"]["request"] for each in self.daemon.calls
                       if each["method"] == "Enqueue")
        self.assertEqual((request["name"], request["as_name"], request["gpu_type"],
                          request["near"]), ("train7", "ann", "h100", "L4"))
        self.assertIn(request["seconds"], (7199, 7200))

    def test_an_update_without_a_unit_is_asked_about(self) -> None:
        with self.assertRaisesRegex(ValueError, 'did you mean "12G"'):
            gpurota.update("L1", memory=12)
        self.assertEqual(self.daemon.methods(), [])


class Commands(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.lease = gpurota.lease(memory="8G", note="test")
        self.addCleanup(self.lease.release)

    def test_the_first_process_is_a_child_of_who_asked_and_starts_the_others(self) -> None:
        start = next(each for each in self.daemon.calls if each["method"] == "Start")
        pid = start["parameters"]["pid"]
        with open("/proc/%d/stat" % pid, encoding="utf-8") as stat:
            self.assertEqual(int(stat.read().split()[3]), os.getpid())
        parent = self.lease.run([*PYTHON, "import os; print(os.getppid())"], capture_output=True,
                                text=True).stdout
        self.assertEqual(int(parent), pid)

    def test_a_command_has_the_variables_of_the_lease_also_in_an_environment_of_its_own(
        self) -> None:
        for environment in (None, {"A": "1"}):
            found = self.lease.run([*PYTHON,
                                    "import os; print(os.environ['GPUROTA_LEASE'], "
                                    "os.environ.get('A'))"],
                                   env=environment, capture_output=True, text=True, check=True)
            self.assertEqual(found.stdout, "L1 1\n" if environment else "L1 None\n")
        self.assertNotIn("GPUROTA_LEASE", os.environ)
        self.assertEqual(self.lease.environ["GPUROTA_LEASE"], "L1")

    def test_nothing_of_a_lease_around_this_process_is_in_the_environment_of_a_command(
        self) -> None:
        outer = {"GPUROTA_LEASE": "L7", "GPUROTA_TOKEN": "t", "GPUROTA_SOCKET": "/s",
                 "GPUROTA_WHOLE": "1", "A": "1",
                 "CUDA_VISIBLE_DEVICES": "5", "LD_PRELOAD": "/old/libgpurota.so:/l/other.so"}
        self.assertEqual(self.lease.environment(outer),
                         {"GPUROTA_LEASE": "L1", "A": "1", "LD_PRELOAD": "/l/other.so"})
        site = {"LD_PRELOAD": "/l/libgpurota.so"}
        self.assertEqual(self.lease.environment(site)["LD_PRELOAD"], "/l/libgpurota.so")

    def test_the_names_of_what_belongs_to_a_lease_are_those_of_the_library(self) -> None:
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
        with open(os.path.join(root, "src", "abi", "env.h"), encoding="utf-8") as file:
            header = file.read()
        names = dict(re.findall(r'#define (GPUROTA_ENV_\w+) "(\w+)"', header))
        match = re.search(r"#define GPUROTA_LEASE_VARIABLES((?:[^\n]*\\\n)*[^\n]*)", header)
        assert match is not None
        listed = tuple(names.get(each.strip(), each.strip().strip('"'))
                       for each in match.group(1).replace("\\\n", "").split(","))
        self.assertEqual(listed, LEASE_VARIABLES)

    def test_streams_are_those_of_subprocess(self) -> None:
        both = ("import sys; d = sys.stdin.read(); print(d.upper()); print('said', "
                "file=sys.stderr); sys.exit(3)")
        done = self.lease.run([*PYTHON, both], input="größe", capture_output=True, encoding="utf-8")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("GRÖSSE\n", "said\n", 3))
        done = self.lease.run([*PYTHON, both], input=b"x", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual((sorted(done.stdout.split()), done.stderr), ([b"X", b"said"], None))
        with open(os.path.join(self.folder, "out"), "wb") as file:
            self.lease.run([*PYTHON, both], stdin=subprocess.DEVNULL, stdout=file,
                           stderr=subprocess.DEVNULL)
        with open(os.path.join(self.folder, "out"), "rb") as file:
            self.assertEqual(file.read(), b"\n")

    def test_a_mebibyte_each_way_does_not_block(self) -> None:
        done = self.lease.run([*PYTHON, "import sys; sys.stdout.write(sys.stdin.read())"],
                              input="x" * (1 << 20), capture_output=True, text=True)
        self.assertEqual(len(done.stdout), 1 << 20)

    def test_what_cannot_be_started_is_the_error_of_subprocess(self) -> None:
        with self.assertRaises(FileNotFoundError) as raised:
            self.lease.run(["/nonexistent/program"])
        self.assertEqual(raised.exception.filename, "/nonexistent/program")
        self.assertRaises(PermissionError, self.lease.run, [self.folder])
        self.assertRaises(FileNotFoundError, self.lease.run, ["true"], cwd="/nonexistent")
        for wrong, environment in (([], {}), (["a\0b"], {}), (["true"], {"A": "\0"}),
                                   (["true"], {"A=B": ""})):
            self.assertRaises(ValueError, self.lease.run, wrong, env=environment)
        self.assertRaises(TypeError, self.lease.run, ["true"], env={"A": 1})
        self.assertEqual(self.lease.run(["true"]).returncode, 0)

    def test_check_and_timeout_raise_what_subprocess_raises(self) -> None:
        with self.assertRaises(subprocess.CalledProcessError):
            self.lease.run("exit 4", shell=True, check=True)
        begun = time.monotonic()
        with self.assertRaises(subprocess.TimeoutExpired):
            self.lease.run(["sleep", "100"], timeout=0.2)
        self.assertLess(time.monotonic() - begun, 50)

    def test_a_process_can_be_polled_signalled_and_waited_for(self) -> None:
        process = self.lease.popen(["sleep", "100"])
        self.assertIsNone(process.poll())
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.terminate()
        self.assertEqual(process.wait(10), -signal.SIGTERM)
        process.kill()  # no effect: the process has ended
        self.assertEqual(process.poll(), -signal.SIGTERM)

    def test_it_has_the_folder_and_the_session_that_were_asked_for(self) -> None:
        code = "import os; print(os.getcwd(), os.getsid(0) == os.getpid())"
        found = self.lease.run([*PYTHON, code], cwd=self.folder, capture_output=True,
                               text=True).stdout
        self.assertEqual(found, "%s False\n" % os.path.realpath(self.folder))
        with self.lease.popen([*PYTHON, code], stdout=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            self.assertEqual(process.communicate()[0], "%s True\n" % os.getcwd())

    def test_words_that_are_no_utf_8_arrive_as_they_are(self) -> None:
        code = ("import os, sys; sys.stdout.buffer.write(os.fsencode(sys.argv[1]) + "
                "os.environb[b'B'])")
        done = self.lease.run([*PYTHON, code, b"caf\xe9"], env={"B": os.fsdecode(b"\xff")},
                              capture_output=True)
        self.assertEqual(done.stdout, b"caf\xe9\xff")

    def test_no_descriptor_stays_open_and_none_of_ours_is_the_commands(self) -> None:
        self.lease.run(["true"])
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            self.lease.run(["true"], capture_output=True)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before + 1)
        found = self.lease.run([*PYTHON, "import os; print(*os.listdir('/proc/self/fd'))"],
                               capture_output=True, text=True).stdout
        self.assertLessEqual({int(each) for each in found.split()}, {0, 1, 2, 3})

    def test_many_threads_start_commands_at_once(self) -> None:
        found = []

        def work(number: int) -> None:
            found.append(self.lease.run("exit %d" % number, shell=True).returncode == number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 20)

    def test_an_interrupt_in_run_ends_the_command(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        reading, writing = os.pipe()
        pids = []

        def interrupt() -> None:
            with os.fdopen(reading) as file:
                pids.append(int(file.readline()))
            signal.pthread_kill(main or 0, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt), os.fdopen(writing, "w") as file:
            self.lease.run("echo $$; exec sleep 100", shell=True, stdout=file)
        while os.path.exists("/proc/%d" % pids[0]):
            time.sleep(0.01)


class Ends(TestCase):
    def test_the_block_releases_it_and_ends_its_first_process(self) -> None:
        with gpurota.lease() as lease:
            process = lease.popen(["sleep", "100"])
            self.daemon.handler = (lambda method,
                                   _: [more(lease=LEASE)] if method == "Hold" else None)
            with mock.patch.object(leases, "END_TAKES", 0.2):
                lease.release()
        self.assertEqual(process.wait(10), -signal.SIGTERM)
        self.assertEqual(self.daemon.methods()[-2:], ["Hold", "Release"])
        with self.assertRaisesRegex(gpurota.LeaseEnded, "L1 has ended: you released it"):
            lease.run(["true"])

    def test_release_waits_for_the_end_and_again_does_nothing(self) -> None:
        self.answer(Hold=[more(lease=LEASE), {"lease": LEASE, "ended": "released"}])
        lease = gpurota.lease()
        lease.release()
        calls = len(self.daemon.calls)
        lease.release()
        self.assertEqual(len(self.daemon.calls), calls)

    def test_one_that_has_ended_and_a_daemon_that_is_gone_are_no_mistake_at_the_end(self) -> None:
        self.answer(Hold=[error("dev.gpurota.NotFound", message="there is no lease L1")])
        with gpurota.lease():
            pass
        with gpurota.lease():
            self.daemon.stop()
        self.daemon.start()

    def test_an_error_in_the_block_is_not_hidden_by_one_at_its_end(self) -> None:
        self.answer(Hold=[b"nonsense\0"])
        with self.assertRaises(ZeroDivisionError):
            with gpurota.lease():
                raise ZeroDivisionError
        with self.assertRaises(gpurota.ProtocolError):
            with gpurota.lease():
                pass

    def test_a_command_that_the_end_of_the_lease_ends_says_why(self) -> None:
        lease = gpurota.lease()
        self.addCleanup(lease.release)
        self.answer(Hold=[{"lease": LEASE, "ended": "expired", "reason": "its time limit is over"}])
        with self.assertRaisesRegex(gpurota.LeaseEnded, "its time limit is over"):
            lease.run("kill -TERM $$", shell=True)
        self.assertEqual(lease.ended, "its time limit is over")
        self.assertRaises(gpurota.LeaseEnded, lease.refresh)

    def test_one_whose_starter_was_killed_is_over(self) -> None:
        lease = gpurota.lease()
        self.addCleanup(lease.release)
        process = lease.popen(["sleep", "0.2"])
        lease._spawner.kill()
        self.assertEqual(process.wait(10), -signal.SIGKILL)
        self.assertRaises(gpurota.LeaseEnded, lease.popen, ["true"])

    def test_a_start_that_is_refused_leaves_nothing(self) -> None:
        self.answer(Start=[error("dev.gpurota.Denied", message="no")])
        with self.assertRaises(gpurota.Denied):
            gpurota.lease()
        self.assertFalse(os.path.exists("/proc/%d" % self.daemon.calls[-1]["parameters"]["pid"]))
        self.assertTrue(self.daemon.hung_up.wait(10))

    def test_a_forked_child_neither_ends_it_nor_uses_it(self) -> None:
        with gpurota.lease() as lease:
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    with contextlib.suppress(gpurota.Error):
                        lease.run(["true"])
                        os._exit(2)
                    lease.__exit__(None, None, None)
                    code = 0
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertNotIn("Release", self.daemon.methods())
            self.assertEqual(lease.run(["true"]).returncode, 0)

    def test_who_drops_it_ends_its_commands(self) -> None:
        lease: Optional[gpurota.Lease] = gpurota.lease()
        assert lease is not None
        process = lease.popen(["sleep", "100"])
        spawner = lease._spawner
        lease._control.close()  # as the garbage collector does, which would print a warning here
        del lease
        self.assertEqual(process.wait(10), -signal.SIGTERM)
        self.assertEqual(spawner.wait(10), 0)


class Environment(unittest.TestCase):
    def test_libgpurota_stands_in_front_of_what_was_preloaded_and_only_once(self) -> None:
        for before, after in (("", "/l.so"), ("/a.so", "/l.so:/a.so"),
                              ("/a.so /l.so", "/a.so /l.so"), ("/l.so:/b.so", "/l.so:/b.so")):
            base = {"LD_PRELOAD": before} if before else {}
            self.assertEqual(merged_environment(base, {"X": "1"}, "/l.so"),
                             {"X": "1", "LD_PRELOAD": after})
        self.assertEqual(merged_environment({"LD_PRELOAD": "/a.so"}, {}, None),
                         {"LD_PRELOAD": "/a.so"})

    def test_a_library_that_cannot_be_loaded_is_an_error(self) -> None:
        check_preload("/etc/passwd")
        for library in ("/nonexistent.so", "/a b.so", "/a:b.so"):
            with self.assertRaisesRegex(gpurota.Unavailable, "limit could not be enforced"):
                check_preload(library)


if __name__ == "__main__":
    sys.exit(unittest.main())
