"""gpurota-dra between a fake kubelet, a fake API server and a gpurotad on simulated GPUs (two of 8
GiB)."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
import unittest

import grpc

from dra_case import DraCase
from fake_api_server import SLICES, amount, config, result
from fake_kubelet import wait_until
from kubelet_case import PREFIX, pod_group

GIB = 1 << 30
WHOLE, TURNS = config("FromClass", share="whole"), config("FromClass", share="turns")


def memory_of(device):
    return amount(device["capacity"]["memory"]["value"])


def flag(device, name):
    return device["attributes"][name]["bool"]


class WhatAPodIsTold(DraCase):
    def reasons(self):
        with self.api.lock:
            return [event["reason"] for event in self.api.events]

    def test_a_lease_that_somebody_ended_is_an_event_of_the_pod(self):
        self.start_plugin()
        claim = self.allocate("a", pods=("train-7",))
        self.prepared(claim)
        lease, = self.leases()
        self.gpurota("release", lease["lease_id"])
        wait_until(lambda: self.reasons() == ["GpuLeaseEnded"], "the event")
        event, = self.api.events
        pod, = claim["status"]["reservedFor"]
        self.assertEqual((event["involvedObject"]["name"], event["involvedObject"]["uid"]),
                         ("train-7", pod["uid"]))
        self.assertEqual(event["source"], {"component": "gpurota-dra", "host": "node-1"})
        self.wait_for_leases(lambda leases: leases and leases[0]["lease_id"] != lease["lease_id"])

    def test_an_api_server_that_takes_no_events_changes_nothing(self):
        self.start_plugin()
        self.prepared(self.allocate("a"))
        lease, = self.leases()
        self.api.fail_next(1, 403, "POST")
        self.gpurota("release", lease["lease_id"])
        wait_until(lambda: self.plugin_says("events of pods cannot be written"), "the warning")
        self.wait_for_leases(lambda leases: leases and leases[0]["lease_id"] != lease["lease_id"])
        self.assertEqual(self.reasons(), [])


class HealthOfDevices(DraCase):
    @staticmethod
    def lose(lost):
        subprocess.run([os.path.join(PREFIX, "bin", "gpurota-sim"), "set", "gpu0.lost=%d" % lost],
                       check=True)

    def watch(self, version):
        watch = self.kubelet.watch_health(version)
        self.addCleanup(watch.cancel)
        return watch

    def test_kubelet_of_each_version_hears_it_at_once(self):
        self.start_plugin()
        for version in ("v1alpha1", "v1beta1", "v1"):
            with self.subTest(version=version):
                self.assertEqual(self.watch(version).next(),
                                 {name: ("HEALTHY", "") for name in self.devices()})

    def test_it_is_said_again_when_it_changes_and_before_kubelet_takes_it_for_unknown(self):
        self.start_plugin()
        name = self.device_names()[0]
        watch = self.watch("v1")
        watch.next()
        self.addCleanup(self.lose, 0)
        self.lose(1)
        watch.wait_for(name, lambda health, message: health == "UNHEALTHY" and "lost" in message)
        self.lose(0)
        watch.wait_for(name, lambda health, message: health == "HEALTHY")
        last = max(watch.times[-1])
        watch.next()
        self.assertTrue(last + 5 <= min(watch.times[-1]) <= last + 25, watch.times)

    def test_who_opens_streams_without_an_end_is_refused_and_others_are_served(self):
        self.start_plugin()
        streams = [self.watch("v1") for _ in range(16)]
        for each in streams:
            each.next()
        with self.assertRaises(grpc.RpcError) as refused:
            self.watch("v1").next()
        self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.prepared(self.allocate("a"))
        streams.pop().cancel()
        wait_until(lambda: self.watch_is_served(), "a stream")

    def watch_is_served(self):
        try:
            return self.watch("v1").next()
        except grpc.RpcError:
            return None


class FromAClaimToALimit(DraCase):
    def test_a_container_of_a_claim_of_2_gib_is_refused_more(self):
        self.start_plugin()
        claim = self.allocate("train-0-gpu")
        prepared = self.prepared(claim)
        self.assertEqual(prepared.devices[0].share_id,
                         claim["status"]["allocation"]["devices"]["results"][0]["shareID"])
        self.assertEqual((list(prepared.devices[0].request_names), prepared.devices[0].pool_name),
                         (["gpu"], "node-1"))
        program = self.execute(prepared, "greedy", "64")
        self.assertRegex(self.wait_for_line(program, "refused at"),
                         "refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY")
        lease, = self.leases()
        self.assertEqual((lease["kind"], lease["share"], lease["gpus"][0]["limit_bytes"]),
                         ("pod", "slice", 2 * GIB))
        self.assertEqual(lease["pod"],
                         {"namespace": "default", "name": "train-0", "container": "train-0-gpu"})
        program.kill()
        self.assertEqual(self.kubelet.unprepare(claim), [""])
        self.wait_for_leases(lambda leases: leases == [])
        self.assertEqual(self.specs(), [])

    def test_the_spec_is_for_root_only_as_the_token_is_in_it(self):
        self.start_plugin()
        self.prepared(self.allocate("a"))
        spec, = self.specs()
        self.assertEqual(os.stat(self.path("cdi/" + spec)).st_mode & 0o777, 0o600)

    def test_the_class_for_whole_gpus_gives_one_alone(self):
        self.start_plugin()
        name, whole = self.device_names()[0], self.device_names("whole")[0]
        claim = self.allocate("whole", memory=None, device=whole, configs=[WHOLE])
        self.prepared(claim)
        self.assertEqual(self.leases()[0]["share"], "exclusive")
        self.wait_for_device(whole, lambda device: not flag(device, "available")
                             and not flag(device, "whole"))
        self.wait_for_device(name, lambda device: not flag(device, "available")
                             and not flag(device, "whole"))
        self.wait_for_device(name + "-turns", lambda device: not flag(device, "available"))
        self.kubelet.unprepare(claim)
        self.wait_for_device(whole, lambda device: flag(device, "whole"))

    def test_a_class_of_an_earlier_version_has_a_whole_gpu_of_its_memory(self):
        self.start_plugin()
        name = self.device_names()[0]
        whole = self.devices()[name]["capacity"]["memory"]["requestPolicy"]["default"]
        self.prepared(self.allocate("whole", memory=whole, configs=[WHOLE]))
        self.assertEqual(self.leases()[0]["share"], "exclusive")
        self.wait_for_device(name, lambda device: not flag(device, "available")
                             and not flag(device, "whole"))
        self.assertEqual(memory_of(self.devices()[name]), amount(whole),
                         "what the claim consumes is still there")

    def test_three_claims_take_turns_on_one_gpu(self):
        self.start_plugin()
        name = self.device_names("turns")[0]
        claims = [self.allocate("turn-%d" % i, memory="1Gi", device=name, configs=[TURNS])
                  for i in range(3)]
        programs = [self.execute(self.prepared(claim), "compute", "200", "2") for claim in claims]
        for program in programs:
            output, _ = program.communicate(timeout=120)
            self.assertEqual(program.returncode, 0, output)
            self.assertRegex(output, "done: [0-9]+ rounds, 0 wrong")
        self.assertEqual([(lease["share"], lease["gpus"][0]["limit_bytes"])
                          for lease in self.leases()], [("swap", GIB)] * 3)

    def test_a_claim_with_two_devices_is_one_lease_on_both(self):
        self.start_plugin()
        both = [result(name, request="gpu", memory="2Gi") for name in self.device_names()]
        claim = self.api.allocate("default", "pair", both)
        prepared = self.prepared(claim)
        self.assertEqual([device.device_name for device in prepared.devices], self.device_names())
        lease, = self.leases()
        self.assertEqual([gpu["limit_bytes"] for gpu in lease["gpus"]], [2 * GIB] * 2)
        self.kubelet.unprepare(claim)
        self.wait_for_leases(lambda leases: leases == [])

    def test_a_claim_that_says_so_has_a_lease_for_each_request(self):
        self.start_plugin()
        first, second = self.device_names()
        results = [result(first, request="big", memory="2Gi"),
                   result(first, request="small/one", memory="1Gi"),
                   result(second, request="small/one", memory="1Gi")]
        claim = self.api.allocate("default", "parts", results,
                                  [config("FromClaim", leasePer="request")])
        prepared = self.prepared(claim)
        self.assertEqual(sorted((lease["pod"]["container"],
                                 [gpu["limit_bytes"] for gpu in lease["gpus"]])
                                for lease in self.leases()),
                         [("big", [2 * GIB]), ("small", [GIB, GIB])])
        for request, words in (("big", "refused at 1[0-9]* MiB"),
                               ("small", "refused at [0-9]{3} MiB")):
            program = self.execute(prepared, "greedy", "64", request=request)
            self.assertRegex(self.wait_for_line(program, "refused at"), words)
            program.kill()
        before = self.lease_ids()
        self.restart_plugin(signal.SIGKILL)
        self.assertEqual({device.cdi_device_ids[0] for device in self.prepared(claim).devices},
                         {each.cdi_device_ids[0] for each in prepared.devices})
        self.assertEqual(self.lease_ids(), before)
        self.assertEqual(self.kubelet.unprepare(claim), [""])
        self.wait_for_leases(lambda leases: leases == [])
        self.assertEqual(self.specs(), [])

    def test_what_two_containers_ask_for_as_resources_is_a_lease_for_each(self):
        self.start_plugin()
        turns = self.device_names("turns")[0]
        usual = self.devices()[turns]["capacity"]["memory"]["requestPolicy"]["default"]
        claim = self.api.allocate("default", "train-0-extended-resources-x7", [
            result(turns, request="container-%d-request-0" % i, memory=usual) for i in (0, 1)],
                                  [TURNS],
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"})
        prepared = self.prepared(claim)
        self.assertEqual(sorted((lease["share"], lease["pod"]["container"])
                                for lease in self.leases()),
                         [("swap", "container-0"), ("swap", "container-1")])
        programs = [self.execute(prepared, "compute", "200", "2",
                                 request="container-%d-request-0" % i) for i in (0, 1)]
        for program in programs:
            output, _ = program.communicate(timeout=120)
            self.assertRegex(output, "done: [0-9]+ rounds, 0 wrong")

    def leases_made(self):
        with open(self.path("gpurotad.log"), encoding="utf-8") as file:
            return file.read().count("lease made")

    def test_where_one_of_its_leases_cannot_be_had_a_claim_leaves_none_and_makes_none_again(self):
        self.start_plugin()
        first, second = self.device_names()
        mine = self.call("Acquire",
                         request={"kind": "reservation", "gpu_ids": [self.gpu_of(second)],
                                  "memory": {"bytes": 7 * GIB}, "seconds": 600})
        self.assertIn("parameters", mine)
        self.wait_for_device(second, lambda device: memory_of(device) < 3 * GIB)
        results = [result(first, request="a", memory="1Gi"),
                   result(second, request="b", memory="3Gi")]
        claim = self.api.allocate("default", "parts", results,
                                  [config("FromClaim", leasePer="request")])
        self.refusal(claim)
        self.assertEqual(([lease["kind"] for lease in self.leases() if lease["state"] != "ending"],
                          self.specs()), (["reservation"], []))
        made = self.leases_made()
        for _ in range(3):
            self.assertIn("this claim needs 3 GiB of GPU", self.refusal(claim))
        self.assertEqual(self.leases_made(), made)
        self.call("Release", lease_id=mine["parameters"]["lease"]["lease_id"])
        self.wait_for_leases(lambda leases: leases == [])
        wait_until(lambda: not self.kubelet.prepare(claim)[0].error,
                   "the claim, as kubelet asks again")
        self.assertEqual(len(self.leases()), 2)

    def test_what_one_gpu_can_never_give_is_refused_without_a_lease_and_the_claim_says_so(self):
        self.start_plugin()
        whole, turns = self.device_names("whole")[0], self.device_names("turns")[0]
        claim = self.api.allocate("default", "train-0-extended-resources-x7", [
            result(whole, request="container-0-request-0"),
            result(turns, request="container-1-request-0", memory="7Gi")],
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"})
        for _ in range(3):
            self.assertIn("to 2 requests of this claim, of which one is for all of it: delete the "
                          "pod", self.refusal(claim))
        self.assertEqual(self.leases_made(), 0)
        wait_until(lambda: self.api.events, "the event")
        event, = self.api.events
        self.assertEqual(event["involvedObject"],
                         {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                          "namespace": "default",
                                                   "name": claim["metadata"]["name"],
                          "uid": claim["metadata"]["uid"]})
        self.assertEqual((event["reason"], event["type"]), ("GpuLeaseRefused", "Warning"))

    def gpu_of(self, device):
        return self.devices()[device]["attributes"]["uuid"]["string"]

    def test_what_another_driver_gives_the_claim_is_left_alone(self):
        self.start_plugin()
        claim = self.api.allocate("default", "mixed",
                                  [result("nic-0", request="nic", driver="nic.example.org",
                                          pool="x"),
                                                       result(self.device_names()[0],
                                                              memory="1Gi")])
        self.assertEqual(len(self.prepared(claim).devices), 1)

    def test_what_a_server_without_shares_allocates_is_a_whole_gpu(self):
        self.start_plugin()
        self.prepared(self.allocate("old", memory=None))
        self.assertEqual(self.leases()[0]["share"], "exclusive")


class Configurations(DraCase):
    def test_reach_the_lease(self):
        self.start_plugin()
        claim = self.allocate("a", memory="1Gi", device=self.device_names("turns")[0],
                              configs=[config("FromClass", share="turns", maxPriority=20),
                                       config("FromClaim", priority=20, quantum="5s")])
        self.prepared(claim)
        lease, = self.leases()
        self.assertEqual((lease["priority"], lease["quantum_ms"]), (20, 5000))

    def test_give_memory_a_share_of_the_compute_time(self):
        self.start_plugin()
        device = self.device_names()[0]
        share = [config("FromClass", share="memory", maxCompute="60%", computeMax="80%"),
                 config("FromClaim", compute="60%")]
        self.prepared(self.allocate("a", memory="1Gi", device=device, configs=share))
        lease, = self.leases()
        self.assertEqual((lease["compute_percent"], lease["compute_max_percent"]), (60, 80))
        # The scheduler does not count shares.
        refusal = self.refusal(self.allocate("b", memory="1Gi", device=device, configs=share))
        self.assertIn("has 35 % of its compute time left", refusal)
        refusal = self.refusal(self.allocate(
            "c", memory="1Gi", device=device, configs=[config("FromClaim", compute="99%")]))
        self.assertIn("compute is not a share", refusal)

    def test_of_a_claim_never_go_beyond_those_of_its_class(self):
        self.start_plugin()
        turns = self.device_names("turns")[0]
        for said, words in (({"priority": 1}, "priority 1 is above 0"),
                            ({"quantum": "6m"}, "quantum 360000ms is above"),
                            ({"share": "whole"}, "share can only be said by the device class"),
                            ({"oversize": True}, "oversize can only be said"),
                            ({"color": "red"}, "color is not known"),
                            ({"softLimit": 5}, "softLimit is not an amount"),
                            ({"kind": "Other"}, "kind is not LeaseConfig")):
            refusal = self.refusal(self.allocate("a", memory="1Gi", device=turns,
                                                 configs=[TURNS, config("FromClaim", **said)]))
            self.assertIn(words, refusal)
        self.assertEqual((self.leases(), self.specs()), ([], []))

    def test_devices_that_no_one_lease_could_be_are_refused_with_what_to_do(self):
        self.start_plugin()
        first, second = self.device_names()
        for results in ([result(first, memory="1Gi"), result(second, memory="2Gi")],
                        [result(first, memory="1Gi"), result(first + "-turns", memory="1Gi")]):
            self.assertIn("make a claim for each",
                          self.refusal(self.api.allocate("default", "odd", results)))
        self.assertIn("no device gpu-9", self.refusal(self.allocate("odd", device="gpu-9")))


class RepeatedCalls(DraCase):
    def test_prepare_again_is_the_same_lease_with_the_same_token(self):
        self.start_plugin()
        claim = self.allocate("a")
        first = self.kubelet.environment(self.prepared(claim))
        again = self.kubelet.environment(self.prepared(claim))
        self.assertEqual(first["GPUROTA_TOKEN"], again["GPUROTA_TOKEN"])
        self.assertEqual(len(self.leases()), 1)

    def test_many_at_once_are_one_lease(self):
        self.start_plugin()
        claim, answers = self.allocate("a"), []
        threads = [threading.Thread(target=lambda: answers.append(self.prepared(claim)))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 8)
        self.assertEqual(len(self.leases()), 1)

    def test_a_claim_that_was_deleted_by_force_and_that_kubelet_has_forgotten_is_given_up(self):
        self.start_plugin()
        gone, used, there = (self.allocate(name) for name in "abc")
        self.prepared(gone)
        self.prepared(there)
        self.wait_for_line(self.execute(self.prepared(used), "hold", "64"), "holding")
        self.assertEqual(len(self.leases()), 3)
        with self.api.lock:
            self.api.claims.clear()
        with pod_group(there["status"]["reservedFor"][0]["uid"]):
            self.wait_for_leases(lambda leases: len(leases) == 2)
            self.assertTrue(self.plugin_says("kubelet does not say that it is over"))
            wait_until(lambda: len(self.specs()) == 2, "the specs of the others alone")
            self.assertEqual(self.kubelet.unprepare(there), [""], "kubelet says it of its own pod")
        self.assertEqual([lease["processes"] for lease in self.leases()], [1], "what is used stays")

    def test_claims_that_no_one_pod_has_are_given_up_by_the_api_servers_answer_alone(self):
        self.start_plugin()
        self.prepared(self.allocate("shared", memory="1Gi", pods=("train-0", "train-1")))
        standing = self.allocate("standing", memory="1Gi", pods=())
        self.prepared(standing)
        self.assertEqual(len(self.leases()), 2)
        with self.api.lock:
            del self.api.claims["default", "shared"]
            del standing["status"]["allocation"]  # the claim exists, but is not allocated any more
        self.wait_for_leases(lambda leases: leases == [])
        wait_until(lambda: self.specs() == [], "the specs")

    def test_what_the_api_server_does_not_have_is_not_offered_again(self):
        self.start_plugin()
        name = self.device_names()[0]
        before = memory_of(self.devices()[name])
        claim = self.allocate("gone", memory="5Gi")
        self.wait_for_line(self.execute(self.prepared(claim), "hold", "64"), "holding")
        self.assertEqual(memory_of(self.devices()[name]), before)
        self.stop_plugin()
        with self.api.lock:
            self.api.claims.clear()
        self.start_plugin("--review", "3600")  # reviews its claims at its start, too
        self.wait_for_device(name, lambda device: memory_of(device) == before - 5 * GIB)
        self.assertEqual(len(self.leases()), 1, "it is used")

    def test_releasing_the_lease_of_a_claim_that_is_gone_ends_it(self):
        self.start_plugin("--review", "3600")
        claim = self.allocate("gone")
        with pod_group(claim["status"]["reservedFor"][0]["uid"]):
            self.prepared(claim)
            lease, = self.lease_ids()
            with self.api.lock:
                self.api.claims.clear()
            self.call("Release", lease_id=lease)
            wait_until(lambda: self.plugin_says("the lease of a claim that is gone was released"),
                       "the driver's log")
            wait_until(lambda: claim["metadata"]["uid"] not in self.stored_claims(),
                       "what is stored")
            self.wait_for_leases(lambda leases: leases == [])
            self.assertEqual(self.specs(), [])
            self.assertFalse(self.plugin_says("has a lease again"))

    def test_a_released_lease_is_made_again_while_the_api_server_is_away(self):
        self.start_plugin()
        self.prepared(self.allocate("a"))
        before, = self.lease_ids()
        self.api.end()
        self.call("Release", lease_id=before)
        self.wait_for_leases(lambda leases: [lease["lease_id"]
                                             for lease in leases] not in ([], [before])
                             and len(leases) == 1)

    def test_unprepare_again_and_of_what_nobody_knows_is_no_error(self):
        self.start_plugin()
        claim, unknown = self.allocate("a"), self.allocate("unknown")
        self.assertEqual(self.kubelet.unprepare(unknown), [""])
        self.prepared(claim)
        self.assertEqual(self.kubelet.unprepare(claim, unknown), ["", ""])
        self.assertEqual(self.kubelet.unprepare(claim), [""])
        self.wait_for_leases(lambda leases: leases == [])

    def test_of_several_claims_one_that_cannot_be_prepared_does_not_keep_the_others(self):
        self.start_plugin()
        good, bad = self.allocate("good"), self.allocate("bad", memory="7Gi")
        answers = self.kubelet.prepare(good, bad)
        self.assertEqual(answers[0].error, "")
        self.assertIn("gpurota: no lease for this claim yet", answers[1].error)
        self.assertEqual(len(self.leases()), 1)

    def test_a_claim_that_was_refused_is_read_anew_and_prepared_later(self):
        self.start_plugin()
        gpu = self.call("Status")["parameters"]["gpus"][0]["uuid"]
        reservation = self.call("Acquire",
                                request={"kind": "reservation", "gpu_ids": [gpu],
                                         "memory": {"bytes": 6 * GIB}})
        claim = self.allocate("late", device=gpu.lower())
        self.assertIn("no lease for this claim yet", self.refusal(claim))
        self.call("Release", lease_id=reservation["parameters"]["lease"]["lease_id"])
        self.wait_for_leases(lambda leases: leases == [])
        self.prepared(claim)

    def test_a_claim_that_waits_stores_nothing_however_often_it_is_tried(self):
        self.start_plugin()
        self.prepared(self.allocate("a", memory="1Gi"))
        before = os.stat(self.path("plugin/claims.textproto"))
        bad = self.allocate("bad", memory="7Gi")
        for _ in range(3):
            self.refusal(bad)
        after = os.stat(self.path("plugin/claims.textproto"))
        self.assertEqual((after.st_ino, after.st_mtime_ns), (before.st_ino, before.st_mtime_ns))

    def test_a_released_lease_is_made_again_as_nobody_else_asks_for_it(self):
        self.start_plugin()
        prepared = self.prepared(self.allocate("a"))
        before, = self.lease_ids()
        self.call("Release", lease_id=before)
        self.wait_for_leases(lambda leases: [lease["lease_id"]
                                             for lease in leases] not in ([], [before])
                             and len(leases) == 1)
        self.wait_for_line(self.execute(prepared, "hold", "100"), "holding")


class Restarts(DraCase):
    def begin(self):
        self.start_plugin()
        self.claim = self.allocate("web")
        self.answer = self.prepared(self.claim)
        self.program = self.execute(self.answer, "hold", "100")
        self.wait_for_line(self.program, "holding")
        self.lease, = self.lease_ids()

    def assert_goes_on(self):
        self.assertIsNone(self.program.poll())
        self.assertEqual(self.prepared(self.claim), self.answer)
        self.assertEqual(self.lease_ids(), [self.lease])
        # The container's next start has the same environment as the first one.
        self.program.kill()
        self.program = self.execute(self.answer, "hold", "100")
        self.wait_for_line(self.program, "holding")
        self.program.kill()
        self.assertEqual(self.kubelet.unprepare(self.claim), [""])
        self.wait_for_leases(lambda leases: leases == [])

    def test_of_the_driver_by_kill_end_no_lease(self):
        self.begin()
        self.restart_plugin(signal.SIGKILL)
        self.assert_goes_on()

    def test_of_the_driver_in_order_leave_no_socket_and_the_devices(self):
        self.begin()
        self.assertEqual(self.stop_plugin(), 0)
        self.assertEqual(os.listdir(self.path("kubelet/plugins_registry")), [])
        self.assertEqual(len(self.devices()), 6)
        self.start_plugin()
        self.assert_goes_on()

    def test_of_the_daemon_by_kill_end_no_lease(self):
        self.begin()
        self.daemon.kill()
        self.daemon.wait()
        self.start_daemon()
        self.assert_goes_on()

    def test_of_kubelet_find_the_driver_again(self):
        self.begin()
        for _ in range(3):
            before = self.kubelet.registrations
            self.kubelet.restart()
            wait_until(lambda before=before: self.kubelet.registrations > before,
                       "the registration")
        self.assert_goes_on()

    def test_of_the_node_bring_the_spec_back(self):
        self.begin()
        self.stop_plugin(signal.SIGKILL)
        self.daemon.kill()
        self.daemon.wait()
        for name in self.specs():
            os.unlink(self.path("cdi/" + name))
        self.start_plugin_before_the_daemon()
        self.assert_goes_on()

    def start_plugin_before_the_daemon(self):
        registrations = self.kubelet.registrations
        self.begin_plugin()
        wait_until(lambda: self.plugin_says("gpurotad does not answer"), "the driver's log")
        self.start_daemon()
        wait_until(lambda: self.kubelet.registrations > registrations, "the registration")

    def test_its_socket_is_served_again_when_it_is_gone(self):
        self.begin()
        before = self.kubelet.registrations
        os.unlink(self.path("kubelet/plugins_registry/gpurota.dev-reg.sock"))
        wait_until(lambda: self.kubelet.registrations > before, "the second registration")
        self.assert_goes_on()

    def test_a_lease_whose_claim_was_lost_here_ends_when_nobody_uses_it(self):
        self.begin()
        self.stop_plugin()
        os.unlink(self.path("plugin/claims.textproto"))
        self.start_plugin()
        self.assertEqual(self.lease_ids(), [self.lease])
        self.program.kill()
        self.wait_for_leases(lambda leases: leases == [])
        self.prepared(self.claim)


class WhatIsAway(DraCase):
    def test_the_daemon_kubelet_is_told(self):
        self.start_plugin()
        claim, late = self.allocate("a"), self.allocate("late")
        self.prepared(claim)
        self.daemon.terminate()
        self.daemon.wait()
        self.assertIn("gpurota: no lease for this claim yet", self.refusal(late))
        self.assertIn("cannot end the lease of this claim", self.kubelet.unprepare(claim)[0])
        self.start_daemon()
        self.assertEqual(self.kubelet.unprepare(claim), [""])
        self.prepared(late)

    def test_the_api_server_a_claim_that_is_known_goes_on(self):
        self.start_plugin()
        claim, late = self.allocate("a"), self.allocate("late", device=self.device_names()[1])
        self.prepared(claim)
        name = self.device_names()[0]
        self.api.end()
        self.prepared(claim)
        self.assertIn("does not answer", self.refusal(late))
        self.assertEqual(self.kubelet.unprepare(claim), [""])
        self.call("Drain", gpu_ids=[self.call("Status")["parameters"]["gpus"][0]["uuid"]])
        wait_until(lambda: self.plugin_says("the node's devices are not published, trying again"),
                   "the driver's log")
        self.api.run()
        self.wait_for_device(name, lambda device: not flag(device, "available"))
        self.prepared(late)

    def test_the_claim_says_so(self):
        self.start_plugin()
        claim = self.allocate("gone")
        del self.api.claims["default", "gone"]
        self.assertIn("cannot read the claim default/gone: the API server says 404",
                      self.refusal(claim))
        self.allocate("gone")
        self.assertIn("is another one by now", self.refusal(claim))

    def test_a_claim_that_makes_no_sense_is_refused(self):
        self.start_plugin()
        claim = self.allocate("odd")
        for body, words in ((b"{", "cannot be read"), (b"[]", "cannot be read"),
                            (b'{"metadata":{"uid":7}}', "cannot be read"), (b"", "cannot be read")):
            self.api.fail_next(1, 200, "GET", body)
            with self.subTest(body=body):
                wait_until(lambda words=words: words in self.refusal_or_empty(claim)
                           or not self.api.failures, "the refusal")
        del claim["status"]["allocation"]
        self.assertIn("has no device of gpurota.dev allocated", self.refusal(claim))
        self.assertEqual(self.leases(), [])

    def test_a_claim_with_admin_access_is_refused(self):
        self.start_plugin()
        claim = self.allocate("admin")
        claim["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
        self.assertIn("has adminAccess, which gpurota does not give", self.refusal(claim))
        self.assertEqual(self.leases(), [])

    def refusal_or_empty(self, claim):
        answer, = self.kubelet.prepare(claim)
        self.kubelet.unprepare(claim)
        return answer.error

    def test_a_uid_that_is_a_path_is_refused(self):
        self.start_plugin()
        claim = self.allocate("a")
        claim["metadata"]["uid"] = "../../etc/x"
        self.assertIn("is not the uid of a claim", self.refusal(claim))
        claim["metadata"].update(uid="1", name="../x")
        self.assertIn("none of Kubernetes'", self.refusal(claim))


class Slices(DraCase):
    def test_say_what_there_is_to_have(self):
        self.start_plugin()
        self.assertEqual(len(self.devices()), 6)
        gpu = self.call("Status")["parameters"]["gpus"][0]
        device = self.devices()[gpu["uuid"].lower()]
        self.assertEqual(device["attributes"]["uuid"], {"string": gpu["uuid"]})
        self.assertEqual(device["attributes"]["productName"], {"string": gpu["name"]})
        self.assertEqual(device["attributes"]["resource.kubernetes.io/pciBusID"],
                         {"string": gpu["pci"].lower()[4:]})
        self.assertNotIn("nvlinkGroup", device["attributes"], "the simulated GPUs are not joined")
        self.assertTrue(device["allowMultipleAllocations"])
        self.assertEqual(memory_of(device), gpu["available_bytes"] // GIB * GIB)
        self.assertEqual(device["capacity"]["memory"]["requestPolicy"]["validRange"],
                         {"min": "1Gi", "step": "1Gi"})
        turns = self.devices()[gpu["uuid"].lower() + "-turns"]
        self.assertGreater(memory_of(turns), memory_of(device), "with the host's")
        policy = turns["capacity"]["memory"]["requestPolicy"]
        self.assertEqual(policy["validRange"]["max"], policy["default"],
                         "no claim can have more than the GPU has")

    def test_the_devices_of_a_gpu_share_a_counter_of_its_memory(self):
        self.start_plugin()
        # The counters are in whole units.
        self.assertEqual(self.api.counters(),
                         {name: {"memory": 7 * GIB} for name in self.device_names()})
        for name, device in self.devices().items():
            gpu = name.removesuffix("-whole").removesuffix("-turns")
            self.assertEqual(device["consumesCounters"],
                             [{"counterSet": gpu, "counters": {"memory": {"value": "7Gi"}}}])
            self.assertEqual(device.get("allowMultipleAllocations", False),
                             not name.endswith("-whole"))

    def test_where_they_may_be_mixed_slices_and_turns_leave_half_of_the_counter(self):
        self.start_plugin("--mixed")
        amounts = {name: device["consumesCounters"][0]["counters"]["memory"]["value"]
                   for name, device in self.devices().items()}
        self.assertEqual(sorted(amounts.values()), ["3584Mi"] * 4 + ["7Gi"] * 2)

    def test_have_no_counters_where_the_server_drops_them_or_its_scheduler_counts_each_claim(self):
        for minor, has_counters in (("36", False), ("35", True), ("34+", False)):
            with self.subTest(minor=minor):
                self.api.minor, self.api.has_counters = minor, has_counters
                self.start_plugin()
                self.assertEqual((len(self.api.devices()), self.api.counters()), (6, {}))
                self.assertNotIn("consumesCounters", json.dumps(self.api.slices()))
                posts = self.api.calls["POST", SLICES], self.api.calls["PUT", SLICES]
                reviews = self.reviews()
                wait_until(lambda reviews=reviews: self.reviews() > reviews + 1, "two reviews")
                self.assertEqual((self.api.calls["POST", SLICES], self.api.calls["PUT", SLICES]),
                                 posts, "they are not tried again")
                self.stop_plugin()

    def test_get_counters_when_the_cluster_is_brought_to_a_version_that_has_them(self):
        self.api.minor = "35"
        self.start_plugin()
        self.api.minor = "36"
        self.kubelet.restart()
        wait_until(lambda: len(self.api.counters()) == 2 and len(self.api.devices()) == 6,
                   "the counters")

    def test_are_written_at_each_change_and_at_no_other_time(self):
        self.start_plugin()
        name = self.device_names()[0]
        before, generation = memory_of(self.devices()[name]), self.api.generation()
        for_turns = memory_of(self.devices()[name + "-turns"])
        gpu = self.call("Status")["parameters"]["gpus"][0]["uuid"]
        lease = self.call("Acquire", request={"kind": "reservation", "gpu_ids": [gpu],
                                              "memory": {"bytes": 3 * GIB}})["parameters"]["lease"]
        self.wait_for_device(name, lambda device: memory_of(device) == before - 3 * GIB
                             and not flag(device, "whole"))
        self.assertGreater(self.api.generation(), generation)
        self.call("Release", lease_id=lease["lease_id"])
        self.wait_for_device(name, lambda device: memory_of(device) == before)
        claim = self.allocate("a", device=name)
        self.prepared(claim)
        self.assertEqual(memory_of(self.devices()[name]), before, "what a claim has is its own")
        self.wait_for_device(name + "-turns", lambda device: memory_of(device) < for_turns)
        generation = self.api.generation()
        reviews = self.reviews()
        wait_until(lambda: self.reviews() > reviews + 1, "two reviews")
        self.assertEqual(self.api.generation(), generation)

    def reviews(self):
        return self.api.calls["GET", SLICES]

    def test_taint_a_gpu_that_is_drained(self):
        self.start_plugin()
        name = self.device_names()[0]
        gpu = self.call("Status")["parameters"]["gpus"][0]["uuid"]
        self.call("Drain", gpu_ids=[gpu])
        self.wait_for_device(name,
                             lambda device: device.get("taints",
                                                       [{}])[0].get("key") == "gpurota.dev/drained")
        self.call("Undrain", gpu_ids=[gpu])
        self.wait_for_device(name, lambda device: "taints" not in device
                             and flag(device, "available"))

    def test_come_back_after_whatever_others_and_the_server_do(self):
        self.start_plugin()
        # Another client has changed the slices, and then removes them.
        self.api.touch_slices()
        self.wait_for_device(self.device_names()[0],
                             lambda device: device["attributes"]["index"] != {"int": 99})
        self.api.remove_slices()
        wait_until(self.api.devices, "the devices")
        # The API server answers with conflicts, missing objects, lists that are too old, failures,
        # and invalid text.
        for method, status, body in (("PUT", 409, None), ("PUT", 404, None), ("GET", 410, None),
                                     ("GET", 500, None), ("PUT", 403, None),
                                     ("GET", 200, b"[]"), ("GET", 200, b"nonsense")):
            with self.subTest(method=method, status=status):
                generation = self.api.generation()
                self.api.fail_next(1, status, method, body)
                self.api.touch_slices()
                wait_until(lambda generation=generation: not self.api.failures
                           and self.api.generation() > generation, "the next generation")

    def begin_watched(self):
        """Starts the plugin so that it lists slices only when the watch reports a change."""
        self.start_plugin("--review", "3600")
        wait_until(lambda: self.api.calls["WATCH", SLICES] > 0, "the watch")

    def wait_for_quiet(self):
        """Waits until the plugin has not listed the slices for two seconds."""
        quiet = {"lists": -1, "since": 0.0}

        def is_quiet():
            lists, now = self.api.calls["GET", SLICES], time.monotonic()
            if lists != quiet["lists"]:
                quiet.update(lists=lists, since=now)
            return now - quiet["since"] > 2
        wait_until(is_quiet, "no list of slices for two seconds")

    def test_what_others_do_is_seen_at_once(self):
        self.begin_watched()
        for disturb in (self.api.touch_slices, self.api.remove_slices, self.api.touch_slices):
            generation = self.api.generation()
            disturb()
            wait_until(lambda generation=generation: self.api.generation() > generation,
                       "the next generation")
            self.assertNotIn({"int": 99}, [device["attributes"]["index"]
                                           for device in self.api.devices().values()])

    def test_come_back_when_the_node_is_made_anew(self):
        self.begin_watched()
        self.api.make_node_anew()
        wait_until(self.api.devices, "the devices")
        generation, posts = self.api.generation(), self.api.calls["POST", SLICES]
        time.sleep(3)  # slices of a removed owner are collected at once
        self.assertTrue(self.api.devices())
        self.assertEqual((self.api.generation(), self.api.calls["POST", SLICES]),
                         (generation, posts))

    def test_that_somebody_removes_all_the_time_are_written_more_and_more_rarely(self):
        self.begin_watched()
        posts, until = self.api.calls["POST", SLICES], time.monotonic() + 10
        while time.monotonic() < until:
            if self.api.devices():
                self.api.remove_slices()
            time.sleep(0.02)
        self.assertLess(self.api.calls["POST", SLICES] - posts, 16, "two slices each time")

    def test_what_the_driver_does_itself_is_no_change(self):
        self.begin_watched()
        self.wait_for_quiet()  # the driver lists once more after its registration
        for name in ("a", "b"):
            generation, lists = self.api.generation(), self.api.calls["GET", SLICES]
            lease = self.call("Acquire",
                              request={"kind": "reservation", "memory": {"bytes": GIB},
                                       "seconds": 600, "note": name})["parameters"]["lease"]
            wait_until(lambda generation=generation: self.api.generation() > generation,
                       "the next generation")
            self.call("Release", lease_id=lease["lease_id"])
            wait_until(lambda generation=generation + 1: self.api.generation() > generation,
                       "what is free again")
            time.sleep(1.5)  # a list that the watch causes comes within half a second
            self.assertEqual(self.api.calls["GET", SLICES] - lists,
                             self.api.generation() - generation, "a list for each that is written")

    def test_a_watch_that_ends_in_any_way_is_begun_again(self):
        self.begin_watched()
        endings = [lambda: self.api.fail_next(1, status, "WATCH", body) for status, body in
                   ((410, None), (500, None), (403, None), (200, b"nonsense\n"),
                    (200, b"[]\n7\n{}\n"), (200, b""))]
        for end in endings:
            watches = self.api.calls["WATCH", SLICES]
            end()
            self.api.end_watches()
            wait_until(lambda watches=watches: self.api.calls["WATCH", SLICES] > watches,
                       "the next watch")
        with self.api.lock:
            self.api.version += 1
            self.api.tell("ERROR", self.api.status(410, "too old resource version")[1])
        generation = self.api.generation()
        self.api.remove_slices()
        wait_until(lambda: self.api.devices(), "the devices")
        self.assertGreater(self.api.generation(), generation)

    def test_without_the_right_to_watch_it_still_polls(self):
        self.api.fail_next(1000, 403, "WATCH")
        self.start_plugin()
        wait_until(lambda: self.plugin_says("cannot be watched"), "the warning")
        self.api.remove_slices()
        wait_until(self.api.devices, "the devices")

    def test_a_token_that_was_renewed_is_read_again(self):
        self.start_plugin()
        self.api.set_token("second")
        self.api.remove_slices()
        wait_until(self.api.devices, "the devices")

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_are_published_by_tls_to_the_server_that_was_signed_for_only(self):
        self.api.end()
        self.api.make_certificate("right.crt")
        self.api.run()
        self.start_plugin()
        self.prepared(self.allocate("a"))
        self.api.end()
        self.api.make_certificate("wrong.crt")
        calls = sum(self.api.calls.values())
        self.api.run()
        wait_until(lambda: self.plugin_says("the node's devices are not published, trying again"),
                   "the driver's log")
        self.assertEqual(sum(self.api.calls.values()), calls, "nobody else has the token")

    def test_are_published_by_a_driver_that_started_without_the_server(self):
        self.api.end()
        self.begin_plugin()
        wait_until(lambda: self.plugin_says("the node's devices are not published"),
                   "the driver's log")
        self.assertEqual(self.kubelet.unprepare(self.api.allocate("default", "x", [])), [""])
        self.api.run()
        wait_until(self.api.devices, "the devices")


class TheProgram(DraCase):
    def test_refuses_what_makes_no_sense(self):
        for arguments, words in ((["--api-server", "http://10.0.0.1"],
                                  "is not the address of an API server"),
                                 (["--node-name", "A/b"], "is not the name of a node"),
                                 (["--memory-unit", "1K"], "at least 64MiB"),
                                 (["--no-such"], "there is no option")):
            self.write("plugin.log", "")
            program = self.start("gpurota-dra", "plugin.log", "--node-name", "node-1",
                                 "--api-server", self.api.url, *arguments)
            self.assertEqual(program.wait(), 2)
            self.assertTrue(self.plugin_says(words), words)

    def test_runs_beside_the_device_plugin(self):
        self.start_plugin()
        prepared = self.prepared(self.allocate("a"))
        other = self.start("gpurota-device-plugin", "other.log", "--kubelet-dir",
                           self.path("kubelet"), "--state-dir", self.path("other"), "--interval",
                           "100")
        self.addCleanup(lambda: (other.terminate(), other.wait()))
        self.wait_for_line(self.execute(prepared, "hold", "100"), "holding")
        self.assertEqual(len(self.leases()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
