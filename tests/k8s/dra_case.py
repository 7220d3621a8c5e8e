"""The common part of the tests of gpurota-dra. Each case has its own gpurotad, fake kubelet, fake
API server and driver."""

import os

from fake_api_server import FakeApiServer, result
from fake_dra_kubelet import FakeDraKubelet
from fake_kubelet import wait_until
from kubelet_case import PROGRAM, KubeletCase


class DraCase(KubeletCase):
    def setUp(self):
        super().setUp()
        self.api = self.make_api()
        self.api.run()
        self.addCleanup(self.api.end)

    def make_api(self):
        return FakeApiServer(self.folder)

    def make_kubelet(self):
        os.mkdir(self.path("cdi"), 0o755)
        return FakeDraKubelet(self.path("kubelet"), self.path("cdi"))

    def begin_plugin(self, *arguments):
        self.plugin = self.start("gpurota-dra", "plugin.log", "--node-name", "node-1",
                                 "--api-server", self.api.url, "--token-file", self.api.token_file,
                                 "--kubelet-dir", self.path("kubelet"), "--cdi-dir",
                                 self.path("cdi"), "--state-dir", self.path("plugin"), "--interval",
                                 "100", "--review", "1", "--log-level", "debug",
                                 *(["--ca-file", self.api.certificate] if self.api.certificate
                                   else []), *arguments)

    def start_plugin(self, *arguments):
        registrations = self.kubelet.registrations
        self.begin_plugin(*arguments)
        wait_until(lambda: self.kubelet.registrations > registrations, "the driver's registration")
        wait_until(self.api.devices, "the node's devices")

    def restart_plugin(self, how):
        self.stop_plugin(how)
        self.start_plugin()

    def devices(self):
        """The devices of the pool once it is complete. While its slices are being written, the
        scheduler sees no devices."""
        found = {}

        def is_complete():
            found.update(self.api.devices())
            return found
        wait_until(is_complete, "the node's devices")
        return found

    def device_names(self, kind="memory"):
        return sorted(name for name, device in self.devices().items()
                      if device["attributes"]["type"]["string"] == kind)

    def wait_for_device(self, name, holds):
        wait_until(lambda: (device := self.api.devices().get(name)) is not None and holds(device),
                   "the device " + name)

    def allocate(self, name, memory="2Gi", device=None, configs=(), **options):
        return self.api.allocate("default", name,
                                 [result(device or self.device_names()[0], memory=memory)], configs,
                                 **options)

    def prepared(self, claim):
        answer, = self.kubelet.prepare(claim)
        self.assertEqual(answer.error, "")
        return answer

    def refusal(self, claim):
        answer, = self.kubelet.prepare(claim)
        self.assertNotEqual(answer.error, "")
        self.assertEqual(list(answer.devices), [])
        return answer.error

    def execute(self, prepared, *command, request=None):
        program = self.kubelet.execute(prepared, [PROGRAM, *command], request)
        self.programs.append(program)
        return program

    def specs(self):
        return sorted(name for name in os.listdir(self.path("cdi")))

    def stored_claims(self):
        with open(self.path("plugin/claims.textproto"), encoding="utf-8") as file:
            return file.read()

    def lease_ids(self):
        return [lease["lease_id"] for lease in self.leases()]
