"""A fake of Kubernetes' kubelet for tests: its device manager and its pod resources, as far as a
device plugin can tell.

    with FakeKubelet(FOLDER) as kubelet:
        kubelet.wait_for("gpurota.dev/memory", lambda devices: len(devices) == 16)
        container = kubelet.admit("default", "train-0", "main", "gpurota.dev/memory", 2)
        process = kubelet.start(container, ["./a.out"])

The fake behaves as versions 1.20 to 1.36 were seen to. The fake removes all sockets of the folder
when it starts, and leaves its own when it ends. For a container, the fake calls Allocate once and
keeps the answer, and calls PreStartContainer before each start. The fake never reports that a
container is gone.
"""

import concurrent.futures
import os
import subprocess
import threading
import time

import grpc

import device_plugin_pb2 as plugin
import pod_resources_pb2 as pods

PATIENCE = float(os.environ.get("E2E_PATIENCE", "30"))


def wait_until(holds, what):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain for " + what)
        time.sleep(0.02)


def unary(channel, service, method, answer, timeout):
    call = channel.unary_unary("/%s/%s" % (service, method),
                               request_serializer=lambda message: message.SerializeToString(),
                               response_deserializer=answer.FromString)
    return lambda request: call(request, timeout=timeout)


class Plugin:
    """A registered plugin, with its devices from a stream that lives as long as the plugin."""

    def __init__(self, socket, options):
        self.channel = grpc.insecure_channel("unix:" + socket,
                                             [("grpc.use_local_subchannel_pool", 1)])
        self.options, self.devices, self.lists, self.ended = options, None, 0, False
        watch = self.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=plugin.ListAndWatchResponse.FromString)
        self.stream = watch(plugin.Empty())
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        try:
            for answer in self.stream:
                self.devices = {device.ID: device for device in answer.devices}
                self.lists += 1
        except grpc.RpcError:
            pass
        self.ended = True

    def call(self, method, request, answer, timeout=30):
        return unary(self.channel, "v1beta1.DevicePlugin", method, answer, timeout)(request)

    def stop(self):
        self.stream.cancel()
        self.channel.close()


class Container:
    def __init__(self, namespace, pod, name, resource, ids, answer):
        self.namespace, self.pod, self.name, self.resource, self.ids, self.answer = (
            namespace, pod, name, resource, ids, answer)


class FakeKubelet:
    def __init__(self, folder):
        self.folder = folder
        self.plugins, self.containers, self.registrations = {}, [], []
        self.lock, self.server, self.pod_server = threading.Lock(), None, None
        self.lists = 0
        os.makedirs(os.path.join(folder, "device-plugins"), exist_ok=True)
        os.makedirs(os.path.join(folder, "pod-resources"), exist_ok=True)

    def __enter__(self):
        self.run()
        return self

    def __exit__(self, *_):
        self.end()

    # Starting and ending the fake.

    def path(self, name):
        return os.path.join(self.folder, "device-plugins", name)

    def run(self):
        for name in os.listdir(os.path.join(self.folder, "device-plugins")):
            os.unlink(self.path(name))
        self.server = self.serve("v1beta1.Registration", "Register", plugin.RegisterRequest,
                                 self.on_register, self.path("kubelet.sock"))
        socket = os.path.join(self.folder, "pod-resources", "kubelet.sock")
        self.pod_server = self.serve("v1.PodResourcesLister", "List", pods.ListPodResourcesRequest,
                                     self.on_list, socket)

    @staticmethod
    def serve(service, method, request, handler, socket):
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
        one = grpc.unary_unary_rpc_method_handler(
            handler, request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString())
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: one}),))
        if os.path.exists(socket):
            os.unlink(socket)
        server.add_insecure_port("unix:" + socket)
        server.start()
        return server

    def end(self):
        for each in self.plugins.values():
            each.stop()
        self.plugins = {}
        self.server.stop(None).wait()
        self.pod_server.stop(None).wait()

    def restart(self):
        """Restarts. The state of containers is kept, as by kubelet's checkpoint."""
        self.end()
        self.run()

    # Calls that plugins make.

    def on_register(self, request, _):
        with self.lock:
            self.registrations.append(request)
            before = self.plugins.get(request.resource_name)
            self.plugins[request.resource_name] = Plugin(self.path(request.endpoint),
                                                         request.options)
        if before:
            before.stop()
        return plugin.Empty()

    def on_list(self, _, __):
        self.lists += 1
        answer = pods.ListPodResourcesResponse()
        for container in list(self.containers):
            pod = answer.pod_resources.add(name=container.pod, namespace=container.namespace)
            shown = pod.containers.add(name=container.name)
            # The devices are listed in pieces, as for several NUMA nodes.
            for some in (container.ids[:1], container.ids[1:]):
                if some:
                    shown.devices.add(resource_name=container.resource, device_ids=some)
        return answer

    # Starting and ending pods.

    def devices(self, resource):
        with self.lock:
            known = self.plugins.get(resource)
        return known.devices if known and known.devices is not None and not known.ended else None

    def healthy(self, resource):
        return sorted(name for name, device in (self.devices(resource) or {}).items()
                      if device.health == "Healthy")

    def wait_for(self, resource, holds):
        wait_until(lambda: self.devices(resource) is not None and holds(self.devices(resource)),
                   "the devices of " + resource)

    def admit(self, namespace, pod, name, resource, count, ids=None):
        with self.lock:
            known = self.plugins[resource]
        if ids is None:
            had = {each for container in self.containers if container.resource == resource
                   for each in container.ids}
            available = [each for each in self.healthy(resource) if each not in had]
            assert len(available) >= count, "%s: %d of %d" % (resource, len(available), count)
            asked = plugin.PreferredAllocationRequest()
            asked.container_requests.add(available_deviceIDs=available, allocation_size=count)
            answer = known.call("GetPreferredAllocation", asked, plugin.PreferredAllocationResponse)
            ids = list(answer.container_responses[0].deviceIDs)
            assert len(ids) == count and set(ids) <= set(available), ids
        request = plugin.AllocateRequest()
        request.container_requests.add(devices_ids=ids)
        answer = known.call("Allocate", request, plugin.AllocateResponse).container_responses[0]
        container = Container(namespace, pod, name, resource, list(ids), answer)
        self.containers.append(container)
        return container

    def pre_start(self, container):
        with self.lock:
            known = self.plugins[container.resource]
        # The ids are not in the order that they had in Allocate, as with the real kubelet.
        known.call("PreStartContainer",
                   plugin.PreStartContainerRequest(devices_ids=reversed(container.ids)),
                   plugin.PreStartContainerResponse)

    def start(self, container, command, **options):
        self.pre_start(container)
        return self.execute(container, command, **options)

    @staticmethod
    def execute(container, command, **options):
        """Starts the command with the environment and mounts of Allocate's answer. A mount at
        /etc/ld.so.preload becomes LD_PRELOAD, which needs no root."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("GPUROTA_") or name.startswith("GPUROTA_SIM")}
        environment.update(container.answer.envs)
        for mount in container.answer.mounts:
            assert os.path.exists(mount.host_path), mount.host_path
            if mount.container_path == "/etc/ld.so.preload":
                with open(mount.host_path, encoding="ascii") as file:
                    environment["LD_PRELOAD"] = file.read().strip()
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                **options)

    def remove(self, container):
        self.containers.remove(container)
