"""Tests of sizes and times as people write them, and of the request made from them."""

import dataclasses
import datetime
import inspect
import sys
import unittest

import gpurota
from gpurota.wishes import Wishes, bytes_of, seconds_of, size_of, time_of

GIB = 1 << 30


class Sizes(unittest.TestCase):
    def test_they_are_read_as_gpurota_reads_them(self) -> None:
        for text, size in (("8G", 8 * GIB), ("8GB", 8 * GIB), ("8GiB", 8 * GIB), ("8 gib", 8 * GIB),
                           ("1.5G", 3 * GIB // 2),
                           ("512M", GIB // 2), ("4096", 4096), ("1k", 1024), ("2T", 2048 * GIB),
                           ("7B", 7), (4096, 4096)):
            self.assertEqual(bytes_of(text), size, text)

    def test_what_is_no_size_is_refused_with_an_example(self) -> None:
        for text in ("", "G", "8X", "-1G", "1.G", ".5G", "1.5", "8 ", "8  G", "0", "0.1B",
                     "99999999999T", "8G ", "1e3", 0, -1):
            with self.assertRaisesRegex(ValueError, "write 8G", msg=text):
                bytes_of(text)
        for thing in (None, 1.5, True, [8]):
            self.assertRaises(TypeError, bytes_of, thing)

    def test_a_share_is_a_percentage(self) -> None:
        self.assertEqual(size_of("25%"), {"percent": 25})
        for text in ("0%", "101%", "1000%", "2.5%", "%"):
            self.assertRaises(ValueError, size_of, text)


class Times(unittest.TestCase):
    def test_they_are_read_as_gpurota_reads_them(self) -> None:
        for text, seconds in (("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400),
                              ("1h30m", 5400), ("1.5h", 5400), (90, 90),
                              (datetime.timedelta(minutes=1), 60)):
            self.assertEqual(seconds_of(text), seconds, text)

    def test_what_is_no_time_is_refused(self) -> None:
        for text in ("", "2", "h", "2x", "-1h", "1h 30m", float("inf"), float("nan")):
            self.assertRaises(ValueError, seconds_of, text)
        for thing in (None, True, [2]):
            self.assertRaises(TypeError, seconds_of, thing)


class Ends(unittest.TestCase):
    NOW = datetime.datetime(2026, 11, 27, 12, 0).astimezone()  # a Friday

    def at(self, day: int, hour: int, minute: int = 0) -> datetime.datetime:
        return datetime.datetime(2026, 11, 1, hour,
                                 minute).astimezone() + datetime.timedelta(days=day - 1)

    def test_they_are_read_as_gpurota_reads_them(self) -> None:
        for text, time in (("18:00", self.at(27, 18)), ("9:30", self.at(28, 9, 30)),
                           ("12:00", self.at(28, 12)),
                           ("tomorrow 09:00", self.at(28, 9)), ("Fri 18:00", self.at(27, 18)),
                           ("fri 09:00", self.at(34, 9)),
                           ("Monday 09:00", self.at(30, 9)),
                           ("+2h", self.NOW + datetime.timedelta(hours=2)),
                           ("2026-11-30 18:00", self.at(30, 18))):
            self.assertEqual(time_of(text, self.NOW), time, text)
        utc = datetime.datetime(2026, 11, 27, 17, 0, tzinfo=datetime.timezone.utc)
        self.assertEqual(time_of(utc, self.NOW), utc)

    def test_what_is_no_time_is_refused(self) -> None:
        for text in ("", "18", "25:00", "18:60", "2026-13-01 10:00", "someday 10:00", 18):
            with self.assertRaisesRegex(ValueError, "write \"18:00\"", msg=repr(text)):
                time_of(text, self.NOW)  # type: ignore[arg-type]

    def test_a_lease_lasts_until_then(self) -> None:
        then = datetime.datetime.now().astimezone() + datetime.timedelta(hours=1)
        seconds = Wishes(until=then).request([])["seconds"]
        self.assertTrue(3590 < seconds <= 3600, seconds)
        self.assertRaisesRegex(ValueError, "over already", Wishes,
                               until=datetime.datetime(2020, 1, 1))
        self.assertRaisesRegex(ValueError, "give one of them", Wishes, until="18:00", timeout="1h")


class Asked(unittest.TestCase):
    def test_whoever_takes_wishes_takes_all_of_them(self) -> None:
        wishes = {each.name for each in dataclasses.fields(Wishes)}
        for function in (gpurota.lease, gpurota.adopt):
            self.assertEqual(set(inspect.signature(function).parameters) - {"on_wait"}, wishes,
                             function)

    def test_which_kind_of_gpu_is_asked_for_as_gpurota_run_asks(self) -> None:
        wishes = Wishes(gpu_type="h100", gpu_class="big", min_memory="40G", min_cc="8.0",
                        near="L12", memory_threshold="1G")
        self.assertEqual(wishes.request([]),
                         {"kind": "run", "gpu_type": "h100", "gpu_class": "big",
                          "min_memory_bytes": 40 * GIB,
                                              "min_cc": 80, "near": "L12",
                          "unreserved_threshold": GIB})
        self.assertEqual(wishes.options(),
                         ["--gpu-type=h100", "--gpu-class=big", "--min-memory=40G", "--min-cc=8.0",
                          "--near=L12",
                                            "--memory-threshold=%d" % GIB])
        self.assertEqual(Wishes(min_cc=9).request([])["min_cc"], 90)
        self.assertEqual(Wishes(min_cc=8.6).request([])["min_cc"], 86)
        self.assertEqual(Wishes(memory_threshold=0).request([])["unreserved_threshold"], 0)
        self.assertEqual(Wishes(memory_threshold="0").options(), ["--memory-threshold=0"])

    def test_an_amount_without_its_unit_is_asked_about(self) -> None:
        for wrong, meant in (({"memory": 8}, "8G"), ({"memory": "8"}, "8G"),
                             ({"memory": 8000}, "8000M"), ({"soft_limit": 4}, "4G"),
                             ({"min_memory": "40"}, "40G"), ({"memory_threshold": 512}, "512M")):
            with self.assertRaisesRegex(ValueError, 'did you mean "%s"' % meant, msg=wrong):
                Wishes(**wrong)  # type: ignore[arg-type]

    def test_a_request_has_what_was_said_and_nothing_else(self) -> None:
        self.assertEqual(Wishes().request([]), {"kind": "run"})
        self.assertEqual(Wishes(warn="10m").request([]), {"kind": "run", "warn_seconds": 600})
        self.assertEqual(Wishes(warn="1h:TERM").request([]),
                         {"kind": "run", "warn_seconds": 3600, "warn_signal": "TERM"})
        slice_of_a_server = Wishes(memory="50%", latency="interactive")
        self.assertEqual(slice_of_a_server.request([]),
                         {"kind": "run", "memory": {"percent": 50}, "latency": "interactive"})
        self.assertEqual(slice_of_a_server.options(), ["--memory=50%", "--latency=interactive"])
        self.assertEqual(Wishes(swap=True, latency="interactive").options(),
                         ["--latency=interactive", "--swap"])
        part = Wishes(memory="8G", compute="30%")
        self.assertEqual(part.request([])["compute_percent"], 30)
        self.assertEqual(part.options(), ["--memory=8G", "--compute=30%"])
        bounded = Wishes(memory="8G", compute="30%", compute_max="50%")
        self.assertEqual(bounded.request([])["compute_max_percent"], 50)
        self.assertEqual(bounded.options(),
                         ["--memory=8G", "--compute=30%", "--compute-max=50%"])
        wishes = Wishes(memory="50%", gpus=2, swap=True, timeout="2h", note="n", name="train7",
                        as_name="ann", priority=0)
        self.assertEqual(wishes.request(["python"]),
                         {"kind": "run", "gpus": 2, "memory": {"percent": 50}, "seconds": 7200,
                          "swap": True, "priority": 0,
                          "name": "train7", "as_name": "ann", "note": "n", "command": ["python"]})

    def test_the_options_of_gpurota_run_say_the_same(self) -> None:
        wishes = Wishes(memory=GIB, gpu_ids=[0, "1:2"], swap=True, oversize=True, timeout="1h30m",
                        wait="1m", note="-x", as_name="ann")
        self.assertEqual(wishes.options(),
                         ["--memory=%d" % GIB, "--note=-x", "--as=ann", "--gpu-ids=0,1:2", "--swap",
                          "--oversize",
                                            "--timeout=5400s", "--wait=60s"])
        self.assertEqual(Wishes(wait=0).options(), ["--nonblock"])
        self.assertEqual(Wishes(warn="10m:USR2").options(), ["--warn=10m:USR2"])
        self.assertEqual(Wishes(wait=0.5).options(), ["--wait=1s"])

    def test_wishes_that_contradict_are_refused_before_anybody_is_asked(self) -> None:
        for wrong in ({"gpus": 1, "gpu_ids": "0"}, {"memory": "8X"}, {"timeout": 0},
                      {"timeout": "0s"}, {"wait": -1}, {"wait": "soon"},
                      {"note": "€" * 342}, {"name": "x" * 65}, {"gpu_ids": "0", "gpu_type": "h100"},
                      {"min_memory": "50%"},
                      {"min_cc": "8.x"}, {"min_cc": True}, {"near": "train7"},
                      {"memory_threshold": "x"}, {"memory": "8G", "latency": "high"},
                      {"latency": "interactive"}, {"compute": "30%"},
                      {"memory": "8G", "compute": "96%"}, {"memory": "8G", "compute": 30},
                      {"memory": "8G", "swap": True, "compute": "30%"},
                      {"compute_max": "50%"}, {"memory": "8G", "compute_max": "0"},
                      {"memory": "8G", "compute_max": "101%"},
                      {"memory": "8G", "compute": "60%", "compute_max": "50%"}):
            with self.assertRaises(ValueError, msg=wrong):
                Wishes(**wrong)  # type: ignore[arg-type]
        self.assertEqual(Wishes(gpu_ids="0,1").request([])["gpu_ids"], ["0", "1"])


if __name__ == "__main__":
    sys.exit(unittest.main())
