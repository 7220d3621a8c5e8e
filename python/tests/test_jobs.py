"""Tests of map(): many commands as the items of one array, and how each ended."""

import unittest
from typing import Any, Dict, List, Optional
from unittest import mock

from fake_daemon import TestCase, error

import gpurota
from gpurota import types

JOB: Dict[str, Any] = {
    "name": "sweep", "uid": 0, "user": "me", "state": "running", "command": [], "options": [],
    "workdir": "", "variables": [], "restart": "no", "after": [], "failures": 0, "runs": [],
}
RUN: Dict[str, Any] = {
    "started": "2026-01-02T03:04:05Z", "ended": "2026-01-02T03:04:06Z", "reason": "exited",
    "code": 0, "max_used_bytes": 1 << 30,
}
KINDS = ("running", "done", "failed", "unknown", "cancelled", "waiting")


def counts(**some: int) -> Dict[str, int]:
    return {**dict.fromkeys(KINDS, 0), **some}


class Array:
    """The daemon's side of one array: ListJobs answers with each of `states` in turn."""

    def __init__(self, case: TestCase, items: List[Dict[str, Any]],
                 states: Optional[List[Any]] = None) -> None:
        self.items = items
        self.states = states or [{"state": "finished"}]
        self.added: Dict[str, Any] = {}
        self.removed: List[Dict[str, Any]] = []
        case.daemon.handler = self.answer

    def answer(self, method: str, parameters: Dict[str, Any]) -> Optional[List[Any]]:
        if method == "AddJob":
            self.added = parameters
            return [{"job": JOB}]
        if method == "ListJobs":
            state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            return [{"jobs": [{**JOB, **state}]} if isinstance(state, dict) else state]
        if method == "ListJobItems":
            first = parameters.get("from", 1)
            two = [each for each in self.items if first <= each["index"] < first + 2]
            page: Dict[str, Any] = {"items": two}
            if first + 2 <= len(self.items):
                page["next"] = first + 2
            return [page]
        if method == "ReadJobLog":
            return [{"text": "output of %d\n" % parameters["item"], "cursor": "", "missed": False}]
        if method == "ControlJob":
            self.removed.append(parameters)
        return None


def item(index: int, state: str = "done", *runs: Dict[str, Any]) -> Dict[str, Any]:
    return {"index": index, "state": state, "runs": list(runs)}


class Map(TestCase):
    def setUp(self) -> None:
        super().setUp()
        for pause in ("FIRST_PAUSE", "LONGEST_PAUSE", "RECONNECT_EVERY"):
            patched = mock.patch("gpurota.jobs." + pause, 0.001)
            patched.start()
            self.addCleanup(patched.stop)

    def test_the_commands_are_the_items_of_an_array_that_is_removed_in_the_end(self) -> None:
        array = Array(self, [item(1, "done", RUN), item(2, "done", RUN), item(3, "done", RUN)])
        commands = [["a", "1"], ["b c"], ["d"]]
        results = gpurota.map(commands, memory="8G", at_once=2, env={"KEY": "value"})
        self.assertEqual([each["words"] for each in array.added["each"]], commands)
        self.assertEqual((array.added["options"], array.added["at_once"]), (["--memory=8G"], 2))
        self.assertEqual(array.added["environment"], [{"name": "KEY", "value": "value"}])
        self.assertEqual([(each.index, each.command, each.ok, each.exit_code) for each in results],
                         [(1, ["a", "1"], True, 0), (2, ["b c"], True, 0), (3, ["d"], True, 0)])
        self.assertEqual([each.output for each in results],
                         ["output of 1\n", "output of 2\n", "output of 3\n"])
        self.assertEqual(results[0].max_used_bytes, 1 << 30)
        self.assertEqual([(each["name"], each["action"], each["force"]) for each in array.removed],
                         [(array.added["name"], "remove", True)])

    def test_each_result_says_how_its_command_ended(self) -> None:
        array = Array(self, [
            item(1, "failed", {**RUN, "code": 3}),
            item(2, "failed", {**RUN, "reason": "signalled", "code": 9}),
            item(3, "failed", {**RUN, "reason": "over-limit", "detail": "it held 9 GiB"}),
            item(4, "cancelled"),
            item(5, "unknown", {**RUN, "reason": "unknown"}),
        ], [{"state": "failed"}])
        results = gpurota.map([["a"]] * 5, memory="1G")
        self.assertEqual([(each.state, each.exit_code, each.reason) for each in results],
                         [("failed", 3, "exited 3"), ("failed", -9, "killed by signal 9"),
                          ("failed", None, "over-limit: it held 9 GiB"),
                          ("cancelled", None, "cancelled"), ("unknown", None, "unknown")])
        self.assertEqual(results[3].output, "")
        text = r"^5 of 5 commands did not end well: 1 \(exited 3\), 2 \(killed by signal 9\)"
        with self.assertRaisesRegex(gpurota.ItemsFailed, text) as caught:
            gpurota.map([["a"]] * 5, memory="1G", check=True)
        self.assertEqual(len(caught.exception.results), 5)
        self.assertEqual(len(array.removed), 2)

    def test_an_array_with_a_name_stays(self) -> None:
        array = Array(self, [item(1, "done", RUN)])
        gpurota.map([["a"]], memory="1G", name="sweep", after_success=["prepare"])
        self.assertEqual(array.added["name"], "sweep")
        self.assertEqual(array.added["after_success"], ["prepare"])
        self.assertEqual(array.removed, [])

    def test_it_waits_over_a_restart_of_the_daemon_and_tells_of_every_change(self) -> None:
        running = {"state": "running", "items": counts(running=1, waiting=1)}
        done = counts(done=1)
        states = [running, None, running, {"state": "running", "items": done},
                  {"state": "finished", "items": done}]
        array = Array(self, [item(1, "done", RUN)], states)
        heard: List[types.Job] = []
        gpurota.map([["a"]], memory="1G", on_change=heard.append)
        self.assertEqual([each.items.done if each.items else None for each in heard], [0, 1])
        self.assertEqual(len(array.removed), 1)

    def test_one_that_is_stopped_removed_or_interrupted_has_no_results(self) -> None:
        detail = "1 done, 2 wait: by root"
        array = Array(self, [], [{"state": "stopped", "detail": detail}])
        with self.assertRaisesRegex(gpurota.Cancelled, "^job map-.* was stopped: %s$" % detail):
            gpurota.map([["a"]], memory="1G")
        self.assertEqual(len(array.removed), 1)
        Array(self, [], [error("dev.gpurota.NotFound", message="no such job")])
        with self.assertRaisesRegex(gpurota.Cancelled, "was removed before all its commands had"):
            gpurota.map([["a"]], memory="1G")
        array = Array(self, [], [{"state": "running"}])
        interrupted = mock.patch("gpurota.jobs.time.sleep", side_effect=KeyboardInterrupt)
        with interrupted, self.assertRaises(KeyboardInterrupt):
            gpurota.map([["a"]], memory="1G")
        self.assertEqual(len(array.removed), 1)

    def test_what_the_daemon_refuses_is_raised_as_it_says_it(self) -> None:
        why = "no GPU here has 999 GiB"
        self.answer(CheckRequest=[error("dev.gpurota.LimitExceeded", message=why)])
        with self.assertRaisesRegex(gpurota.LimitExceeded, why):
            gpurota.map([["a"]], memory="999G")
        self.assertEqual(self.daemon.methods(), ["CheckRequest"])

    def test_wrong_commands_are_refused_before_anything_is_added(self) -> None:
        wrong: List[Any] = ["true", ["./train --lr 1"], [[]]]
        for commands in wrong:
            with self.subTest(commands), self.assertRaises((TypeError, ValueError)):
                gpurota.map(commands, memory="1G")
        with self.assertRaisesRegex(TypeError, "command 2 is the text 'b c', and no shell"):
            gpurota.map([["a"], "b c"], memory="1G")
        with self.assertRaisesRegex(TypeError, r"after_end is a list of names: write \['prepare'"):
            gpurota.map([["a"]], memory="1G", after_end="prepare")
        with self.assertRaisesRegex(ValueError, "did you mean"):
            gpurota.map([["a"]], memory=8)
        self.assertEqual((gpurota.map([], memory="1G"), self.daemon.calls), ([], []))

    def test_commands_that_do_not_fit_into_one_call_are_refused(self) -> None:
        with self.assertRaisesRegex(gpurota.LimitExceeded, "GPUROTA_ARRAY_INDEX"):
            gpurota.map([["train", "x" * 1000]] * 100, memory="1G")
        self.assertNotIn("AddJob", self.daemon.methods())


class Listed(TestCase):
    def test_jobs_and_their_items_are_told_as_the_daemon_knows_them(self) -> None:
        Array(self, [item(1, "done", RUN), item(2), item(3)],
              [{"array": "1-3", "items": counts(done=3), "after_end": ["prepare"]}])
        job = gpurota.jobs("sweep")[0]
        self.assertEqual((job.array, job.items and job.items.done, job.after_end),
                         ("1-3", 3, ["prepare"]))
        self.assertEqual([each.index for each in gpurota.job_items("sweep")], [1, 2, 3])


if __name__ == "__main__":
    unittest.main()
