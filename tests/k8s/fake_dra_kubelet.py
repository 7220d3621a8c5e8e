"""A part of Kubernetes' kubelet for tests: the part that talks to drivers of dynamic resources.

The fake behaves as versions 1.34 to 1.36 were seen to. The fake finds plugins by the sockets in
plugins_registry, and keeps these sockets when it starts and ends. Before a pod starts, and again
after its own restart, the fake calls Prepare for the claims of the pod. When the pod has ended, the
fake calls Unprepare. """

import json
import os
import subprocess
import threading

import grpc

import dra_health_pb2 as health
import dra_pb2 as dra
import plugin_registration_pb2 as registration
from fake_kubelet import unary, wait_until

SERVICE = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"


class HealthWatch:
    def __init__(self, endpoint, service):
        self.channel = grpc.insecure_channel("unix:" + endpoint,
                                             [("grpc.use_local_subchannel_pool", 1)])
        call = self.channel.unary_stream("/%s/NodeWatchResources" % service,
                                         request_serializer=health.Watch.SerializeToString,
                                         response_deserializer=health.Devices.FromString)
        self.stream = call(health.Watch())
        self.times = []

    def next(self):
        message = next(self.stream)
        self.times.append({device.last_updated_time for device in message.devices})
        assert {device.device.pool_name for device in message.devices} == {"node-1"}, message
        return {device.device.device_name: (health.Health.Name(device.health), device.message)
                for device in message.devices}

    def wait_for(self, name, holds):
        while True:
            found = self.next()[name]
            if holds(*found):
                return

    def cancel(self):
        self.stream.cancel()
        self.channel.close()


class FakeDraKubelet:
    def __init__(self, folder, cdi_folder):
        self.folder, self.cdi_folder = folder, cdi_folder
        self.registry = os.path.join(folder, "plugins_registry")
        self.info, self.seen, self.registrations, self.ended, self.thread = (
            None, None, 0, threading.Event(), None)
        os.makedirs(self.registry, exist_ok=True)

    def run(self):
        self.ended.clear()
        self.seen = None
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def end(self):
        self.ended.set()
        self.thread.join()
        self.info = None

    def restart(self):
        self.end()
        self.run()

    def follow(self):
        while not self.ended.wait(0.05):
            sockets = [os.path.join(self.registry, name) for name in os.listdir(self.registry)
                       if name.endswith(".sock")]
            if not sockets:
                self.info = self.seen = None
                continue
            try:
                found = os.stat(sockets[0])
                now = (found.st_ino, found.st_ctime_ns)
                if now != self.seen:
                    self.register(sockets[0])
                    self.seen = now
            except (OSError, grpc.RpcError):
                pass

    def register(self, path):
        with grpc.insecure_channel("unix:" + path,
                                   [("grpc.use_local_subchannel_pool", 1)]) as channel:
            info = unary(channel, "pluginregistration.Registration", "GetInfo",
                         registration.PluginInfo, 5)(registration.InfoRequest())
            assert (info.type, info.name, info.supported_versions[0]) == (
                "DRAPlugin", "gpurota.dev", "v1.DRAPlugin"), info
            notify = unary(channel, "pluginregistration.Registration", "NotifyRegistrationStatus",
                           registration.RegistrationStatusResponse, 5)
            notify(registration.RegistrationStatus(plugin_registered=True))
        self.info = info
        self.registrations += 1

    def call(self, method, request, answer, timeout=45):
        wait_until(lambda: self.info is not None, "the driver's registration")
        with grpc.insecure_channel("unix:" + self.info.endpoint,
                                   [("grpc.use_local_subchannel_pool", 1)]) as channel:
            return unary(channel, SERVICE, method, answer, timeout)(request)

    def watch_health(self, version):
        """The driver's reports on its devices, one by one: {device: (health, message)}. Ends with
        the driver, or with cancel()."""
        service = version + ".DRAResourceHealth"
        assert service in self.info.supported_versions, self.info
        return HealthWatch(self.info.endpoint, service)

    @staticmethod
    def claims_of(claims, request):
        for claim in claims:
            metadata = claim["metadata"]
            request.claims.add(namespace=metadata["namespace"], name=metadata["name"],
                               uid=metadata["uid"])
        return request

    def prepare(self, *claims):
        """Calls Prepare for these claims; returns the answer for each, in order."""
        answer = self.call("NodePrepareResources",
                           self.claims_of(claims, dra.NodePrepareResourcesRequest()),
                           dra.NodePrepareResourcesResponse)
        assert len(answer.claims) == len({claim["metadata"]["uid"] for claim in claims}), answer
        return [answer.claims[claim["metadata"]["uid"]] for claim in claims]

    def unprepare(self, *claims):
        answer = self.call("NodeUnprepareResources",
                           self.claims_of(claims, dra.NodeUnprepareResourcesRequest()),
                           dra.NodeUnprepareResourcesResponse)
        return [answer.claims[claim["metadata"]["uid"]].error for claim in claims]

    # The work of a container engine.

    def edits(self, device):
        """The changes that a CDI device of ours makes to a container."""
        kind, _, name = device.partition("=")
        for file_name in os.listdir(self.cdi_folder):
            if not file_name.endswith(".json"):
                continue
            with open(os.path.join(self.cdi_folder, file_name), encoding="utf-8") as file:
                spec = json.load(file)
            for each in spec["devices"]:
                if spec["kind"] == kind and each["name"] == name:
                    return each["containerEdits"]
        raise AssertionError("no device " + device)

    def environment(self, prepared, request=None):
        """The environment of a container that uses a whole claim, or one request of it."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("GPUROTA_") or name.startswith("GPUROTA_SIM")}
        for device in {name for each in prepared.devices if not request
                       or request in each.request_names for name in each.cdi_device_ids}:
            edits = self.edits(device)
            environment.update(each.split("=", 1) for each in edits["env"])
            for mount in edits["mounts"]:
                assert os.path.exists(mount["hostPath"]), mount
                if mount["containerPath"] == "/etc/ld.so.preload":
                    with open(mount["hostPath"], encoding="ascii") as file:
                        environment["LD_PRELOAD"] = file.read().strip()
        return environment

    def execute(self, prepared, command, request=None):
        return subprocess.Popen(command, env=self.environment(prepared, request),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
