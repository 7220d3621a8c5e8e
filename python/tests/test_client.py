"""Tests of the client of the control socket: answers, errors, and text that is not an answer."""

import dataclasses
import datetime
import os
import sys
import threading
import time
import unittest
from typing import List, Optional
from unittest import mock

from fake_daemon import LEASE, REQUEST, STATUS, Answer, TestCase, error, more

import gpurota
from gpurota import types
from gpurota.client import Connection, find_socket, sendable_command
from gpurota.decode import decode, time_of


class Client(TestCase):
    def test_a_status_arrives_as_dataclasses(self) -> None:
        gpu = {"index": 0, "uuid": "GPU-1", "name": "H200", "pci": "0:1", "state": "available",
               "memory_bytes": 8, "used_bytes": 1,
               "reserved_bytes": 2, "unreserved_bytes": 0, "leases": ["L1"],
               "idle_since": "2026-01-02T03:04:05.25+01:00"}
        self.answer(Status=[{**STATUS, "gpus": [gpu], "leases": [LEASE]}])
        status = gpurota.status()
        self.assertEqual((status.gpus[0].name, status.gpus[0].leases, status.gpus[0].parent),
                         ("H200", ["L1"], None))
        self.assertEqual(status.gpus[0].idle_since,
                         datetime.datetime(2026, 1, 2, 2, 4, 5, 250000, datetime.timezone.utc))
        self.assertEqual(status.leases[0].lease_id, "L1")

    def test_unknown_fields_and_words_are_no_mistake(self) -> None:
        self.answer(Status=[{**STATUS, "weather": "fine",
                             "leases": [{**LEASE, "state": "dreaming", "host": {"a": []}}]}])
        self.assertEqual(gpurota.status().leases[0].state, "dreaming")

    def test_what_need_not_be_there_and_cannot_be_read_is_none(self) -> None:
        self.answer(Status=[{**STATUS, "waiting": "many",
                             "leases": [{**LEASE, "ends": "soon", "note": 7, "priority": 1e400}]}])
        status = gpurota.status()
        self.assertEqual((status.waiting, status.leases[0].ends, status.leases[0].note,
                          status.leases[0].priority), (None,) * 4)

    def test_what_must_be_there_and_is_not_is_an_error_that_names_it(self) -> None:
        for broken in ({**LEASE, "uid": "me"},
                       {key: value for key, value in LEASE.items() if key != "uid"}):
            self.answer(Status=[{**STATUS, "leases": [broken]}])
            with self.assertRaisesRegex(gpurota.ProtocolError,
                                        "'leases' of StatusReply|'uid' of Lease"):
                gpurota.status()

    def test_a_name_that_python_keeps_for_itself_has_an_underscore(self) -> None:
        switch = decode(types.TurnSwitch, {"time": "2026-01-02T03:04:05Z", "from": "L1", "to": "L2",
                                           "in_bytes": 1, "out_bytes": 2,
                                           "clean_bytes": 0, "microseconds": 9})
        self.assertEqual((switch.from_, switch.to), ("L1", "L2"))

    def test_errors_are_exceptions_with_the_daemons_sentence(self) -> None:
        for name, kind in (("InvalidRequest", gpurota.InvalidRequest),
                           ("NotFound", gpurota.NotFound), ("Denied", gpurota.Denied),
                           ("LimitExceeded", gpurota.LimitExceeded),
                           ("Unavailable", gpurota.Unavailable), ("Failed", gpurota.Failed),
                           ("OfTheFuture", gpurota.Refused)):
            self.answer(Status=[error("dev.gpurota." + name, message="no: because")])
            with self.assertRaises(kind) as raised:
                gpurota.status()
            self.assertEqual(str(raised.exception), "no: because")
            self.assertIsInstance(raised.exception, gpurota.Refused)

    def test_a_call_that_only_reads_is_sent_to_the_next_daemon(self) -> None:
        answers: List[Optional[List[Answer]]] = [[None], None]
        self.daemon.handler = lambda method, parameters: answers.pop(0)
        self.assertEqual(gpurota.status().gpus, [])
        self.assertEqual(self.daemon.methods(), ["Status", "Status"])

    def test_one_that_may_have_done_something_is_not_sent_twice(self) -> None:
        self.daemon.handler = lambda method, parameters: [None]
        with self.assertRaisesRegex(gpurota.NoDaemon, "closed the connection"):
            gpurota.release("L1")
        self.assertEqual(self.daemon.methods(), ["Release"])

    def test_a_daemon_that_always_hangs_up_is_not_asked_for_ever(self) -> None:
        self.daemon.handler = lambda method, parameters: [None]
        with self.assertRaises(gpurota.NoDaemon):
            gpurota.status()
        self.assertEqual(self.daemon.methods(), ["Status"] * 3)

    def test_no_gpu_says_how_many_were_free(self) -> None:
        self.answer(Status=[error("dev.gpurota.NoGpu", message="none", free=1, total=4)])
        with self.assertRaises(gpurota.NoGpu) as raised:
            gpurota.status()
        self.assertEqual((raised.exception.free, raised.exception.total), (1, 4))

    def test_errors_of_varlink_say_what_was_wrong(self) -> None:
        self.answer(Status=[error("org.varlink.service.InvalidParameter", parameter="gpu_ids[1]")],
                    ListRequests=[error("org.varlink.service.MethodNotFound",
                                        method="dev.gpurota.ListRequests")])
        with self.assertRaisesRegex(gpurota.InvalidRequest, r"gpu_ids\[1\]"):
            gpurota.status()
        with self.assertRaisesRegex(gpurota.ProtocolError, "older than this module"):
            gpurota.queue()

    def test_what_is_no_answer_is_a_protocol_error(self) -> None:
        for nonsense in (b"hello\0", b"[]\0", b"\xff\xfe\0", b"{\0", b"\0", b'{"parameters": 7}\0',
                         b"[" * 100000 + b"\0", b"{}\0", b'{"parameters": {"gpus": {}}}\0'):
            self.answer(Status=[nonsense])
            with self.assertRaises(gpurota.ProtocolError, msg=nonsense[:20]):
                gpurota.status()

    def test_a_daemon_that_hangs_up_is_no_daemon(self) -> None:
        for answers in ([None], [b'{"parameters": {"gpus', None]):
            self.answer(Status=answers)
            with self.assertRaisesRegex(gpurota.NoDaemon, "closed the connection"):
                gpurota.status()

    def test_one_that_is_silent_times_out(self) -> None:
        self.answer(Status=[b"{"])
        with Connection() as connection, self.assertRaises(gpurota.TimedOut):
            connection.call("Status", {}, types.StatusReply, timeout=0.05)

    def test_an_answer_may_come_in_pieces_and_two_at_once(self) -> None:
        whole = more(request=REQUEST, environment=[])
        self.answer(Enqueue=[whole[:7], whole[7:] + whole])
        with Connection() as connection:
            connection.send("Enqueue", {}, True)
            for _ in range(2):
                reply, continues = connection.receive(types.EnqueueReply)
                self.assertTrue(continues and reply.request is not None
                                and reply.request.request_id == "R1")

    def test_where_nobody_listens_the_error_says_what_to_do(self) -> None:
        self.daemon.stop()
        for path in (self.folder, "/nonexistent", self.daemon.path):
            self.set_variable("GPUROTA_RUNTIME_DIR", path)
            with self.assertRaisesRegex(gpurota.NoDaemon,
                                        "no gpurotad is running at .*: start 'gpurotad"):
                gpurota.status()
        self.set_variable("GPUROTA_RUNTIME_DIR", None)
        self.assertEqual(find_socket(), "/run/gpurota/control.sock" if os.geteuid() == 0
                         else find_socket())

    def test_a_socket_path_that_is_too_long_is_an_error_of_the_module(self) -> None:
        self.set_variable("GPUROTA_RUNTIME_DIR", "/" + "x" * 200)
        with self.assertRaises(gpurota.Error):
            gpurota.status()

    def test_what_is_too_long_to_be_sent_is_refused_here(self) -> None:
        with self.assertRaisesRegex(gpurota.LimitExceeded, "shorten it"):
            gpurota.update("L1", note="x" * 70000)
        self.assertEqual(self.daemon.calls, [])

    def test_text_that_is_no_utf_8_is_sent_all_the_same(self) -> None:
        self.answer(Update=[{"lease": LEASE}])
        gpurota.update("L1", note=os.fsdecode(b"caf\xe9 \xe2\x82\xac\0"))
        self.assertEqual(self.daemon.calls[0]["parameters"]["note"], "caf? €\0")

    def test_a_command_is_shown_as_far_as_it_fits(self) -> None:
        self.assertEqual(sendable_command(["python", "a b", ""]), ["python", "a b", ""])
        self.assertEqual(len(sendable_command(["x"] * 1000)), 256)
        self.assertLessEqual(sum(len(each.encode())
                                 for each in sendable_command(["€" * 9000, "y"])), 8192)

    def test_times_are_read_in_every_form_of_the_rfc(self) -> None:
        for text in ("2026-01-02T03:04:05Z", "2026-01-02t03:04:05.000000001z",
                     "2026-01-02T04:04:05+01:00", "2026-01-01T23:04:05-04:00"):
            self.assertEqual(time_of(text),
                             datetime.datetime(2026, 1, 2, 3, 4, 5, 0, datetime.timezone.utc), text)
        for text in ("2026-01-02", "2026-13-02T03:04:05Z", "", "2026-01-02T03:04:05"):
            self.assertRaises(ValueError, time_of, text)

    def test_every_type_can_be_made_and_compared(self) -> None:
        for name in vars(types):
            if dataclasses.is_dataclass(getattr(types, name)):
                self.assertTrue(getattr(types, name).__dataclass_params__.frozen, name)


class Events(TestCase):
    EVENT = {"event_id": 1, "time": "2026-01-02T03:04:05Z", "type": "lease_made", "message": "made",
             "count": 1}

    def reply(self, *ids: int) -> dict:
        return {"events": [{**self.EVENT, "event_id": each} for each in ids], "missed": 0,
                "left_out": 0}

    def test_they_come_in_several_answers(self) -> None:
        self.answer(Events=[more(**self.reply(1, 2)), self.reply(3)])
        self.assertEqual([each.event_id for each in gpurota.events(since="2h")], [1, 2, 3])
        self.assertRegex(self.daemon.calls[0]["parameters"]["since"], r"^\d{4}-\d\d-\d\dT.*Z$")

    def test_who_follows_them_misses_none_over_a_restart(self) -> None:
        def handler(method: str, parameters: dict) -> list:
            return ([more(**self.reply(1, 2)), None] if "after" not in parameters
                    else [more(**self.reply(3))])

        self.daemon.handler = handler
        found = gpurota.events(follow=True)
        self.assertEqual([next(found).event_id for _ in range(3)], [1, 2, 3])
        self.assertEqual([each["parameters"].get("after") for each in self.daemon.calls], [None, 2])
        self.daemon.hung_up.clear()
        found.close()  # type: ignore[attr-defined]
        self.assertTrue(self.daemon.hung_up.wait(10))

    def test_no_daemon_at_first_is_an_error(self) -> None:
        self.daemon.stop()
        with self.assertRaises(gpurota.NoDaemon):
            next(gpurota.events(follow=True))


class Reasons(TestCase):
    def test_the_time_is_filled_in_as_the_reader_writes_times(self) -> None:
        now = datetime.datetime(2026, 11, 23, 12, 30, tzinfo=datetime.timezone.utc)
        text = "GPU 3 is free until {time}, then bob's booking R16 begins"
        shown = {"12:30:45": 45, "14:30": 7200, "Tue 12:30": 86400, "Mon 30 Nov 12:30": 7 * 86400,
                 "Sun 22 Nov 12:30": -86400}
        with mock.patch.dict(os.environ, {"TZ": "UTC"}):
            time.tzset()
            for clock, seconds in shown.items():
                reason = types.Reason("free_until", text, now + datetime.timedelta(seconds=seconds))
                self.assertEqual(gpurota.reason_text(reason, now), text.replace("{time}", clock))
        time.tzset()

    def test_braces_of_somebody_else_stay(self) -> None:
        self.assertEqual(gpurota.reason_text(types.Reason("out_of_service",
                                                          "GPU 0 is draining: {time}")),
                         "GPU 0 is draining: {time}")

    def test_a_refusal_has_what_it_would_wait_for(self) -> None:
        reason = {"code": "kept", "text": "GPU 1 is kept for R1 of bob, which came first"}
        self.answer(Acquire=[error("dev.gpurota.NoGpu", message="no", free=0, total=1,
                                   wait_reason=reason)])
        with self.assertRaises(gpurota.NoGpu) as raised:
            gpurota.lease(wait=0)
        assert raised.exception.wait_reason is not None
        self.assertEqual(raised.exception.wait_reason.code, "kept")


class Explain(TestCase):
    def test_it_has_ones_own_requests_and_leases_in_words(self) -> None:
        others = {**LEASE, "lease_id": "L2", "uid": 12345678}
        older = {key: value for key, value in REQUEST.items() if key != "wait_reason"}
        self.answer(Status=[{**STATUS, "leases": [LEASE, others]}],
                    ListRequests=[{"requests": [REQUEST, older]}],
                    ListTurns=[{"gpus": [], "host_budget_bytes": 0, "host_out_bytes": 0}])
        text = str(gpurota.explain())
        self.assertIn("R1, position 1: waits for GPU 1: bob's program (L3) has no time limit; "
                      "starts now with --swap\n", text)
        self.assertIn("R1, position 1: as an older module shows it\n", text)
        self.assertIn("L1 on GPU", text)
        self.assertNotIn("L2", text)
        self.assertIn("L2", str(gpurota.explain("L2")))
        with self.assertRaisesRegex(gpurota.NotFound, "L9"):
            gpurota.explain("L9")

    def test_many_threads_ask_at_once(self) -> None:
        failed = []

        def ask() -> None:
            try:
                gpurota.status()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
