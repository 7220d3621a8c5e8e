"""gpurota-device-plugin between a fake kubelet and a gpurotad on simulated GPUs (two of 8 GiB)."""

import json
import os
import signal
import subprocess
import time
import unittest

import grpc

from fake_api_server import FakeApiServer
from fake_kubelet import PATIENCE, wait_until
from kubelet_case import GPU, MEMORY, PREFIX, PROGRAM, TURN, KubeletCase, pod_group

GIB = 1 << 30
UNITS = 14  # of two GPUs of 8 GiB, less what the driver keeps


def gpu_of(device):
    return device.split("::")[0]


class DoctorChecksTheNode(KubeletCase):
    def doctor(self, *options):
        done = subprocess.run([os.path.join(PREFIX, "bin", "gpurota"), "doctor", "--json",
                               *options], env=self.environment, text=True,
                              stdout=subprocess.PIPE, check=False)
        return {each["name"]: each for each in json.loads(done.stdout)["checks"]}

    def checks(self):
        return self.doctor("--kubelet-dir", self.path("kubelet"))

    def test_it_says_who_gives_gpus_to_pods(self):
        self.assertEqual(self.checks()["device plugin"]["status"], "error")
        self.start_plugin()
        devices = {MEMORY: list(self.kubelet.devices(MEMORY))}
        with open(self.path("kubelet/device-plugins/kubelet_internal_checkpoint"), "w",
                  encoding="utf-8") as file:
            json.dump({"Data": {"PodDeviceEntries": None, "RegisteredDevices": devices},
                       "Checksum": 1}, file)
        checks = self.checks()
        self.assertEqual((checks["kubelet"]["status"], checks["device plugin"]["status"]),
                         ("ok", "ok"), checks)
        self.assertIn("%s (%d)" % (MEMORY, UNITS), checks["device plugin"]["summary"])
        container = self.kubelet.admit("default", "train-0", "main", MEMORY, 2)
        program = self.run_in(container, "hold", "64")
        self.wait_for_line(program, "holding")
        wait_until(lambda: self.checks()["pods"]["summary"] == "1 container has a lease",
                   "the lease in doctor's words")
        self.stop_plugin(signal.SIGKILL)
        self.assertEqual(self.checks()["device plugin"]["status"], "error",
                         "its sockets are still there, and nobody listens")
        self.kubelet.end()
        self.assertEqual(self.checks()["kubelet"]["status"], "error")
        program.kill()

    def test_without_kubernetes_it_says_nothing_of_it(self):
        self.assertNotIn("kubelet", self.doctor())


class WhatAPodIsTold(KubeletCase):
    UID = "1b4e28ba-2fa1-4d2b-883f-0016d3cca427"

    def setUp(self):
        super().setUp()
        self.api = FakeApiServer(self.folder)
        self.api.run()
        self.addCleanup(self.api.end)

    def start_plugin(self, *arguments):
        super().start_plugin("--events", "--node-name", "node-1", "--api-server", self.api.url,
                             "--token-file", self.api.token_file, *arguments)

    def begin_in_a_pod(self, group):
        """Starts a container whose program, which uses the GPU, is in the control group of the
        pod."""
        container = self.kubelet.admit("default", "train-0", "main", MEMORY, 2)
        program = self.kubelet.start(container,
                                     ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group,
                                      PROGRAM, "hold", "64"])
        self.programs.append(program)
        self.wait_for_line(program, "holding")
        self.wait_for_leases(lambda leases: leases and "pod" in leases[0])
        wait_until(lambda: 'pod_uid: "%s"' % self.UID in self.stored(),
                   "the plugin to know which pod it is")
        return program

    def stored(self):
        with open(self.path("plugin/allocations.textproto"), encoding="utf-8") as file:
            return file.read()

    def test_a_lease_that_somebody_ended_is_an_event_of_the_pod_whose_control_group_its_programs_are_in(self):
        self.start_plugin()
        with pod_group(self.UID) as group:
            program = self.begin_in_a_pod(group)
            lease, = self.leases()
            self.gpurota("release", lease["lease_id"])
            wait_until(lambda: self.api.events, "the event")
            program.wait(PATIENCE)
        event, = self.api.events
        self.assertEqual((event["reason"], event["source"]),
                         ("GpuLeaseEnded", {"component": "gpurota-device-plugin",
                                            "host": "node-1"}))
        subject = event["involvedObject"]
        self.assertEqual((subject["namespace"], subject["name"], subject["uid"]),
                         ("default", "train-0", self.UID))
        self.assertEqual(subject["fieldPath"], "spec.containers{main}")
        self.assertIn("when its container starts again", event["message"])

    def test_a_pod_that_is_completed_and_listed_still_has_no_lease_once_its_control_group_is_gone(
        self):
        self.start_plugin()
        with pod_group(self.UID) as group:
            program = self.begin_in_a_pod(group)
            program.kill()
            program.wait(PATIENCE)
            wait_until(lambda: self.leases()[0]["processes"] == 0, "its process to be gone")
            # While the pod exists, a container may start again.
            lists = self.kubelet.lists
            wait_until(lambda: self.kubelet.lists > lists + 5, "some lists of kubelet's")
            self.assertEqual(len(self.leases()), 1)
            os.rmdir(group)
            self.wait_for_leases(lambda leases: leases == [])
        self.assertTrue(self.plugin_says("its pod has ended"))
        self.assertEqual(self.api.events, [], "that is nothing to tell")

    def test_without_an_api_server_it_works_all_the_same(self):
        self.api.end()
        self.start_plugin()
        container = self.kubelet.admit("default", "train-0", "main", MEMORY, 2)
        self.wait_for_line(self.run_in(container, "hold", "64"), "holding")


class FromRegistrationToALimit(KubeletCase):
    def test_a_container_with_two_units_of_memory_is_refused_more_than_2_gib(self):
        self.start_plugin()
        self.assertEqual(len(self.kubelet.devices(MEMORY)), UNITS)
        container = self.kubelet.admit("default", "train-0", "main", MEMORY, 2)
        self.assertEqual(self.leases(), [], "the lease comes with the start")
        program = self.run_in(container, "greedy", "64")
        self.assertRegex(self.wait_for_line(program, "refused at"),
                         "refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY")
        lease, = self.leases()
        self.assertEqual((lease["kind"], lease["share"], lease["gpus"][0]["limit_bytes"]),
                         ("pod", "slice", 2 * GIB))
        self.wait_for_leases(lambda leases: leases[0].get("pod") == {
            "namespace": "default", "name": "train-0", "container": "main"})
        self.assertEqual(self.leases()[0]["as_name"], "default/train-0/main")
        program.kill()
        self.kubelet.remove(container)
        self.wait_for_leases(lambda leases: leases == [])

    def test_a_container_with_a_whole_gpu_has_it_alone(self):
        self.start_plugin()
        container = self.kubelet.admit("default", "whole", "main", GPU, 1)
        program = self.run_in(container, "hold", "100")
        self.wait_for_line(program, "holding")
        lease, = self.leases()
        self.assertEqual(lease["share"], "exclusive")
        wait_until(lambda: self.leases()[0]["processes"] == 1, "the process in the lease")
        taken = lease["gpus"][0]["uuid"]
        self.kubelet.wait_for(MEMORY,
                              lambda _: {gpu_of(each)
                                         for each in self.kubelet.healthy(
                                             MEMORY)} == self.gpus() - {taken})

    def test_three_containers_take_turns_on_one_gpu(self):
        self.start_plugin("--turn-memory", "1GiB")
        containers = [self.kubelet.admit("default", "turn-%d" % i, "main", TURN, 1)
                      for i in range(4)]
        self.assertEqual({gpu_of(each.ids[0]) for each in containers}, self.gpus(),
                         "spread over the GPUs")
        programs = [self.run_in(each, "compute", "200", "2") for each in containers]
        for program in programs:
            output, _ = program.communicate(timeout=120)
            self.assertEqual(program.returncode, 0, output)
            self.assertRegex(output, "done: [0-9]+ rounds, 0 wrong")
        self.assertEqual({lease["share"] for lease in self.leases()}, {"swap"})

    def gpus(self):
        return {gpu["uuid"] for gpu in self.call("Status")["parameters"]["gpus"]}


class Restarts(KubeletCase):
    def begin(self):
        self.start_plugin()
        self.container = self.kubelet.admit("default", "web", "main", MEMORY, 2)
        self.program = self.run_in(self.container, "hold", "100")
        self.wait_for_line(self.program, "holding")
        self.wait_for_leases(lambda leases: leases[0].get("pod"))
        self.lease = self.leases()[0]["lease_id"]

    def assert_goes_on(self):
        self.assertIsNone(self.program.poll())
        self.assertEqual([lease["lease_id"] for lease in self.leases()], [self.lease])
        # At the next start of the container, kubelet calls only PreStartContainer.
        self.program.kill()
        self.program = self.run_in(self.container, "hold", "100")
        self.wait_for_line(self.program, "holding")
        self.assertEqual([lease["lease_id"] for lease in self.leases()], [self.lease])

    def test_a_container_starts_again_under_its_lease(self):
        self.begin()
        self.assert_goes_on()

    def test_of_the_plugin_by_kill_ends_no_lease(self):
        self.begin()
        self.stop_plugin(signal.SIGKILL)
        self.start_plugin()
        self.assert_goes_on()

    def test_of_the_plugin_in_order_leaves_no_socket(self):
        self.begin()
        self.assertEqual(self.stop_plugin(), 0)
        self.assertEqual(os.listdir(self.path("kubelet/device-plugins")), ["kubelet.sock"])
        self.start_plugin()
        self.assert_goes_on()

    def test_sockets_and_files_are_closed_to_others_whatever_the_umask(self):
        before = os.umask(0)
        try:
            self.begin()
        finally:
            os.umask(before)
        found = [os.path.join(folder, name) for folder in ("kubelet/device-plugins", "plugin")
                 for name in os.listdir(self.path(folder))
                 if name not in ("kubelet.sock", "plugin.log")]
        self.assertIn("kubelet/device-plugins/gpurota-memory.sock", found)
        self.assertIn("plugin/allocations.textproto", found)
        for name in found:
            self.assertEqual(os.stat(self.path(name)).st_mode & 0o077, 0, name)

    def test_of_the_daemon_by_kill_ends_no_lease(self):
        self.begin()
        self.daemon.kill()
        self.daemon.wait()
        self.start_daemon()
        self.assert_goes_on()

    def test_of_kubelet_brings_all_devices_back(self):
        self.begin()
        for _ in range(3):
            self.kubelet.restart()
            for name, count in ((MEMORY, UNITS), (GPU, 2)):
                self.kubelet.wait_for(name, lambda devices, count=count: len(devices) == count)
        self.assert_goes_on()

    def test_a_kubelet_that_does_not_know_its_pods_yet_ends_no_lease(self):
        self.begin()
        self.kubelet.end()
        known, self.kubelet.containers = self.kubelet.containers, []
        self.kubelet.run()
        lists = self.kubelet.lists
        wait_until(lambda: self.kubelet.lists > lists + 4, "lists without the pod")
        self.kubelet.containers = known
        self.assert_goes_on()

    def test_a_plugin_that_kubelet_has_dropped_registers_again(self):
        self.begin()
        with self.kubelet.lock:
            self.kubelet.plugins.pop(MEMORY).stop()
        self.kubelet.wait_for(MEMORY, lambda devices: len(devices) == UNITS)
        self.assert_goes_on()

    def test_its_socket_is_served_again_when_it_is_gone(self):
        self.begin()
        os.unlink(self.path("kubelet/device-plugins/gpurota-memory.sock"))
        wait_until(lambda: self.registrations_of(MEMORY) == 2, "the second registration")
        self.assert_goes_on()

    def test_a_lease_that_was_released_is_made_again_at_the_next_start(self):
        self.begin()
        self.call("Release", lease_id=self.lease)
        self.program.wait()
        self.wait_for_leases(lambda leases: leases == [])
        self.program = self.run_in(self.container, "hold", "100")
        self.wait_for_line(self.program, "holding")
        self.assertNotEqual(self.leases()[0]["lease_id"], self.lease)

    def registrations_of(self, resource):
        return sum(1 for each in self.kubelet.registrations if each.resource_name == resource)


class WhatCanBeHad(KubeletCase):
    def test_memory_that_a_lease_of_others_has_is_unhealthy_meanwhile(self):
        self.start_plugin()
        before = len(self.kubelet.healthy(MEMORY))
        gpu = self.call("Status")["parameters"]["gpus"][0]["uuid"]
        self.call("Drain", gpu_ids=[gpu])
        self.kubelet.wait_for(MEMORY, lambda _: all(gpu_of(each) != gpu
                                                    for each in self.kubelet.healthy(MEMORY)))
        self.kubelet.wait_for(GPU, lambda _: gpu not in self.kubelet.healthy(GPU))
        self.call("Undrain", gpu_ids=[gpu])
        self.kubelet.wait_for(MEMORY, lambda _: len(self.kubelet.healthy(MEMORY)) == before)
        reservation = self.acquire(kind="reservation", gpu_ids=[gpu], memory={"bytes": 3 * GIB})
        self.kubelet.wait_for(MEMORY, lambda _: len(self.kubelet.healthy(MEMORY)) == before - 3)
        self.kubelet.wait_for(GPU, lambda _: gpu not in self.kubelet.healthy(GPU))
        self.call("Release", lease_id=reservation)
        self.kubelet.wait_for(MEMORY, lambda _: len(self.kubelet.healthy(MEMORY)) == before)

    def test_a_container_waits_with_a_sentence_for_what_somebody_has(self):
        self.start_plugin()
        container = self.kubelet.admit("default", "late", "main", MEMORY, 6)
        gpu = gpu_of(container.ids[0])
        reservation = self.acquire(kind="reservation", gpu_ids=[gpu], memory={"bytes": 5 * GIB})
        with self.assertRaises(grpc.RpcError) as refused:
            self.kubelet.pre_start(container)
        self.assertIn("no lease for this container yet", refused.exception.details())
        self.call("Release", lease_id=reservation)
        self.wait_for_leases(lambda leases: leases == [])
        self.kubelet.pre_start(container)
        self.assertEqual(len(self.leases()), 1)

    def test_memory_on_two_gpus_is_refused_before_the_start_with_what_to_do(self):
        self.start_plugin()
        free = self.kubelet.healthy(MEMORY)
        container = self.kubelet.admit("default", "split", "main", MEMORY, 0,
                                       ids=[free[0], free[-1]])
        with self.assertRaises(grpc.RpcError) as refused:
            self.kubelet.pre_start(container)
        self.assertIn("delete the pod", refused.exception.details())
        self.assertEqual(self.leases(), [])

    def test_memory_is_packed_on_one_gpu(self):
        self.start_plugin()
        first = self.kubelet.admit("default", "a", "main", MEMORY, 2)
        second = self.kubelet.admit("default", "b", "main", MEMORY, 5)
        self.assertEqual({gpu_of(each) for each in first.ids},
                         {gpu_of(each) for each in second.ids})
        third = self.kubelet.admit("default", "c", "main", MEMORY, 4)
        self.assertEqual(len({gpu_of(each) for each in third.ids}), 1)
        self.assertNotEqual(gpu_of(third.ids[0]), gpu_of(first.ids[0]))

    def test_devices_that_are_given_anew_take_their_lease_along(self):
        self.start_plugin()
        old = self.kubelet.admit("default", "old", "main", MEMORY, 2)
        self.kubelet.pre_start(old)
        before = self.leases()[0]["lease_id"]
        self.kubelet.remove(old)
        new = self.kubelet.admit("default", "new", "main", MEMORY, 0, ids=old.ids)
        self.assertNotEqual(old.answer.envs["GPUROTA_TOKEN"], new.answer.envs["GPUROTA_TOKEN"])
        self.wait_for_leases(lambda leases: before not in [lease["lease_id"] for lease in leases])
        self.kubelet.pre_start(new)
        self.assertEqual(len(self.leases()), 1)

    def acquire(self, **request):
        answer = self.call("Acquire", request=request)
        return answer["parameters"]["lease"]["lease_id"]


class WhatMustNotHang(KubeletCase):
    def test_allocate_answers_while_the_daemon_does_not(self):
        self.start_plugin()
        self.daemon.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        container = self.kubelet.admit("default", "a", "main", MEMORY, 2)
        self.assertLess(time.monotonic() - begin, 5)
        self.daemon.send_signal(signal.SIGCONT)
        self.kubelet.pre_start(container)
        self.assertEqual(len(self.leases()), 1)

    def test_a_container_is_told_when_the_daemon_is_away(self):
        self.start_plugin()
        container = self.kubelet.admit("default", "a", "main", MEMORY, 2)
        self.daemon.terminate()
        self.daemon.wait()
        with self.assertRaises(grpc.RpcError) as refused:
            self.kubelet.pre_start(container)
        self.assertIn("gpurota: no lease for this container yet", refused.exception.details())
        self.start_daemon()
        self.kubelet.pre_start(container)

    def test_a_kubelet_that_does_not_list_its_pods_ends_no_lease(self):
        self.start_plugin()
        container = self.kubelet.admit("default", "a", "main", MEMORY, 2)
        self.kubelet.pre_start(container)
        self.wait_for_leases(lambda leases: leases[0].get("pod"))
        self.kubelet.pod_server.stop(None).wait()
        wait_until(lambda: self.plugin_says("kubelet does not say which pods have devices"),
                   "the plugin's log")
        self.assertEqual(len(self.leases()), 1)
        self.kubelet.remove(container)
        self.kubelet.restart()
        self.wait_for_leases(lambda leases: leases == [])

    def test_nonsense_is_refused_and_changes_nothing(self):
        self.start_plugin()
        for ids in (["nonsense"], [], ["GPU-0::1", "GPU-0::1"], ["x" * 5000], ["GPU-unknown::0"]):
            with self.assertRaises(grpc.RpcError, msg=str(ids)[:60]):
                self.kubelet.admit("default", "a", "main", MEMORY, 0, ids=ids)
        self.assertEqual(self.kubelet.containers, [])
        self.assertEqual(len(self.kubelet.devices(MEMORY)), UNITS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
