"""Sizes and times as people write them, and what is asked for with them."""

import datetime
import sys
import unittest

from gpurota.wishes import Wishes, bytes_of, seconds_of, size_of

GIB = 1 << 30


class Sizes(unittest.TestCase):
    def test_they_are_read_as_gpurota_reads_them(self) -> None:
        for text, size in (("8G", 8 * GIB), ("8GB", 8 * GIB), ("8GiB", 8 * GIB), ("8 gib", 8 * GIB), ("1.5G", 3 * GIB // 2),
                           ("512M", GIB // 2), ("4096", 4096), ("1k", 1024), ("2T", 2048 * GIB), ("7B", 7), (4096, 4096)):
            self.assertEqual(bytes_of(text), size, text)

    def test_what_is_no_size_is_refused_with_an_example(self) -> None:
        for text in ("", "G", "8X", "-1G", "1.G", ".5G", "1.5", "8 ", "8  G", "0", "0.1B", "99999999999T", "8G ", "1e3", 0, -1):
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
        for text, seconds in (("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400), ("1h30m", 5400), ("1.5h", 5400), (90, 90),
                              (datetime.timedelta(minutes=1), 60)):
            self.assertEqual(seconds_of(text), seconds, text)

    def test_what_is_no_time_is_refused(self) -> None:
        for text in ("", "2", "h", "2x", "-1h", "1h 30m", float("inf"), float("nan")):
            self.assertRaises(ValueError, seconds_of, text)
        for thing in (None, True, [2]):
            self.assertRaises(TypeError, seconds_of, thing)


class Asked(unittest.TestCase):
    def test_a_request_has_what_was_said_and_nothing_else(self) -> None:
        self.assertEqual(Wishes().request([]), {"kind": "run"})
        self.assertEqual(Wishes(warn="10m").request([]), {"kind": "run", "warn_seconds": 600})
        self.assertEqual(Wishes(warn="1h:TERM").request([]), {"kind": "run", "warn_seconds": 3600, "warn_signal": "TERM"})
        wishes = Wishes(memory="50%", gpus=2, swap=True, timeout="2h", note="n", name="ann", priority=0)
        self.assertEqual(wishes.request(["python"]),
                         {"kind": "run", "gpus": 2, "memory": {"percent": 50}, "seconds": 7200, "swap": True, "priority": 0,
                          "as_name": "ann", "note": "n", "command": ["python"]})

    def test_the_options_of_gpurota_run_say_the_same(self) -> None:
        wishes = Wishes(memory=GIB, gpu_ids=[0, "1:2"], swap=True, oversize=True, timeout="1h30m", wait="1m", note="-x", name="ann")
        self.assertEqual(wishes.options(), ["--memory=%d" % GIB, "--note=-x", "--as=ann", "--gpu-ids=0,1:2", "--swap", "--oversize",
                                            "--timeout=5400s", "--wait=60s"])
        self.assertEqual(Wishes(wait=0).options(), ["--nonblock"])
        self.assertEqual(Wishes(warn="10m:USR2").options(), ["--warn=10m:USR2"])
        self.assertEqual(Wishes(wait=0.5).options(), ["--wait=1s"])

    def test_wishes_that_contradict_are_refused_before_anybody_is_asked(self) -> None:
        for wrong in ({"gpus": 1, "gpu_ids": "0"}, {"memory": "8X"}, {"timeout": 0}, {"timeout": "0s"}, {"wait": -1}, {"wait": "soon"},
                      {"note": "€" * 342}, {"name": "x" * 65}):
            with self.assertRaises(ValueError, msg=wrong):
                Wishes(**wrong)  # type: ignore[arg-type]
        self.assertEqual(Wishes(gpu_ids="0,1").request([])["gpu_ids"], ["0", "1"])


if __name__ == "__main__":
    sys.exit(unittest.main())
