"""An API server for tests: nodes, ResourceClaims and ResourceSlices of Kubernetes, as far as a
driver for dynamic resources can tell.

    with FakeApiServer(FOLDER) as api:
        claim = api.allocate("default", "claim-1", [result(device, "main", "8Gi")])
        api.slices()

The server keeps versions of objects (409 for an old one), refuses a token other than the newest in
the token file, and checks what a real server checks of a slice: names, capacity and its policy,
counters. `fail_next` makes the server answer the next calls with a status, or not at all.
"""

import collections
import http.server
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse
import uuid

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = re.compile(r"/apis/resource\.k8s\.io/v1/namespaces/([^/]+)/resourceclaims/([^/]+)$")
EVENTS = re.compile(r"/api/v1/namespaces/([^/]+)/events$")
DRIVER = "gpurota.dev"
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def amount(text):
    match = re.fullmatch(r"([0-9]+)(|Ki|Mi|Gi|Ti)", text)
    assert match, text
    return int(match.group(1)) * UNITS[match.group(2)]


def result(device, request="gpu", memory=None, share=True, pool="node-1", driver=DRIVER):
    found = {"request": request, "driver": driver, "pool": pool, "device": device}
    if memory:
        found["consumedCapacity"] = {"memory": memory}
    if memory and share:
        found["shareID"] = str(uuid.uuid4())
    return found


def config(source, requests=(), **parameters):
    parameters = dict({"apiVersion": "gpurota.dev/v1", "kind": "LeaseConfig"}, **parameters)
    return {"source": source, "requests": list(requests),
            "opaque": {"driver": DRIVER, "parameters": parameters}}


LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


def wrong_with_capacity(capacity, is_shared):
    if not is_shared:
        return "requestPolicy" in capacity  # forbidden where only one claim may have the device
    value, policy = amount(capacity["value"]), capacity["requestPolicy"]
    usual, least = amount(policy["default"]), amount(policy["validRange"]["min"])
    step = amount(policy["validRange"].get("step", "1"))
    most = amount(policy["validRange"].get("max", capacity["value"]))
    return (not least <= usual <= most <= value or (usual - least) % step
            or ("step" in policy["validRange"] and least + step > most)
            or ("max" in policy["validRange"] and (most - least) % step))


def wrong_with_counters(sets, most):
    names = [each.get("counterSet", each.get("name")) for each in sets]
    if len(names) > most or len(set(names)) != len(names):
        return True
    return any(not re.fullmatch(LABEL, name) or not 0 < len(each["counters"]) <= 32 or
               not all(re.fullmatch(LABEL, counter) and amount(value["value"]) >= 0
                       for counter, value in each["counters"].items())
               for name, each in zip(names, sets))


def wrong_with_device(device):
    if not re.fullmatch(LABEL, device["name"]):
        return "name"
    if len(device["attributes"]) + len(device["capacity"]) > 32:
        return "too many attributes"
    for name, attribute in device["attributes"].items():
        if not re.fullmatch(r"([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z_]\w{0,31}", name):
            return name
        kind, = attribute
        if (kind == "version"
            and not re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", attribute[kind])):
            return "%s: %s" % (name, attribute)
        if kind == "string" and len(attribute[kind]) > 64:
            return name
    if wrong_with_counters(device.get("consumesCounters", []), 2):
        return "consumesCounters"
    for capacity in device["capacity"].values():
        if wrong_with_capacity(capacity, device.get("allowMultipleAllocations")):
            return str(capacity)
    return None


def wrong_with(spec):
    """The field of a slice that a real API server would refuse; None if it would refuse nothing."""
    devices, sets = spec.get("devices", []), spec.get("sharedCounters", [])
    if devices and sets:
        return "only one of `sharedCounters` or `devices` is allowed"
    if wrong_with_counters(sets, 8):
        return "sharedCounters"
    # A slice may have only 64 devices if a device in it has a taint or consumes counters.
    if len(devices) > 64 or spec["pool"]["resourceSliceCount"] < 1:
        return "devices"
    names = [device["name"] for device in devices]
    if len(set(names)) != len(names):
        return "names"
    for device in devices:
        wrong = wrong_with_device(device)
        if wrong:
            return "%s: %s" % (device["name"], wrong)
    return None


class FakeApiServer:
    def __init__(self, folder, node="node-1"):
        self.folder, self.node, self.node_uid = folder, node, str(uuid.uuid4())
        self.objects, self.claims, self.calls, self.events = {}, {}, collections.Counter(), []
        self.version, self.lock, self.failures, self.port = 0, threading.Lock(), [], 0
        self.token_file = os.path.join(folder, "token")
        self.token, self.server, self.hung, self.connections = "", None, threading.Event(), []
        self.certificate = None
        # The version 1.MINOR of Kubernetes, and whether its feature DRAPartitionableDevices is on.
        self.minor, self.has_counters = "36", True
        self.log, self.watch_ends = [], 0  # events for watches: (version, event)
        self.set_token("first")

    def __enter__(self):
        self.run()
        return self

    def __exit__(self, *_):
        self.end()

    # Starting and ending the server.

    def run(self):
        self.hung.clear()
        handler = type("Handler", (Handler,), {"api": self})
        self.server = Server(("127.0.0.1", self.port), handler)
        self.server.daemon_threads = True
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.certificate + ".key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()

    def end(self):
        self.hung.set()
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the client has closed it already
        self.server, self.connections = None, []

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % ("https" if self.certificate else "http", self.port)

    def make_certificate(self, name):
        """Makes the server use TLS from its next start on, with this self-signed certificate."""
        self.certificate = os.path.join(self.folder, name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                        self.certificate + ".key",
                        "-out", self.certificate], check=True, stderr=subprocess.DEVNULL)

    def set_token(self, token):
        self.token = token
        with open(self.token_file + ".new", "w", encoding="ascii") as file:
            file.write(token + "\n")
        os.rename(self.token_file + ".new", self.token_file)

    def fail_next(self, count, status, method=None, body=None):
        """Makes `count` calls fail with `status`; with status 0 the server does not answer."""
        with self.lock:
            self.failures += [(status, method, body)] * count

    # The server's objects.

    def slices(self):
        with self.lock:
            return json.loads(json.dumps(list(self.objects.values())))

    def pool(self):
        """The devices of the newest generation, and the counters that they share ({set: {counter:
        value}}), if the generation is complete."""
        slices = self.slices()
        newest = max((each["spec"]["pool"]["generation"] for each in slices), default=0)
        specs = [each["spec"] for each in slices if each["spec"]["pool"]["generation"] == newest]
        if not specs or len(specs) != specs[0]["pool"]["resourceSliceCount"]:
            return {}, {}
        counters = {each["name"]: {name: amount(counter["value"])
                                   for name, counter in each["counters"].items()}
                    for spec in specs for each in spec.get("sharedCounters", [])}
        return {device["name"]: device for spec in specs
                for device in spec.get("devices", [])}, counters

    def devices(self):
        return self.pool()[0]

    def counters(self):
        return self.pool()[1]

    def generation(self):
        return max((each["spec"]["pool"]["generation"] for each in self.slices()), default=0)

    def remove_slices(self):
        with self.lock:
            for each in list(self.objects.values()):
                self.remove(each["metadata"]["name"])

    def remove(self, name):
        gone = self.objects.pop(name)
        gone["metadata"]["resourceVersion"] = self.next_version()
        self.tell("DELETED", gone)
        return gone

    def tell(self, kind, about):
        """Tells all watches about a change."""
        self.log.append((self.version, {"type": kind, "object": json.loads(json.dumps(about))}))

    def end_watches(self):
        self.watch_ends += 1

    def watch(self, version, send):
        """Sends the changes to one watch until its connection, or this server, ends."""
        ends = self.watch_ends
        while not self.hung.wait(0.02) and self.watch_ends == ends:
            with self.lock:
                news = [event for at, event in self.log if at > version]
                version = self.version
            for event in news:
                send(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")

    def touch_slices(self):
        """Changes the slices as another client would."""
        with self.lock:
            for each in self.objects.values():
                each["metadata"]["resourceVersion"] = self.next_version()
                for device in each["spec"].get("devices", [])[:1]:
                    device["attributes"]["index"] = {"int": 99}
                self.tell("MODIFIED", each)

    def next_version(self):
        self.version += 1
        return str(self.version)

    def allocate(self, namespace, name, results, configs=(), pods=("train-0",), annotations=None):
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                 "metadata": {"namespace": namespace, "name": name, "uid": str(uuid.uuid4()),
                              "annotations": annotations or {}},
                 "status": {"allocation": {"devices": {"results": list(results),
                                                       "config": list(configs)}},
                            "reservedFor": [{"resource": "pods", "name": pod,
                                             "uid": str(uuid.uuid4())} for pod in pods]}}
        self.claims[namespace, name] = claim
        return claim

    def make_node_anew(self):
        """Deletes the node with all objects that it owns, and makes another of the same name, as
        kubelet does."""
        with self.lock:
            self.node_uid = str(uuid.uuid4())
            for name in list(self.objects):
                self.remove(name)

    # Answers to calls.

    def answer(self, method, path, query, body):
        claim = CLAIMS.match(path)
        if claim and method == "GET":
            return self.found(self.claims.get(claim.groups()), claim.group(2))
        events = EVENTS.match(path)
        if events and method == "POST":
            return self.take_event(events.group(1), body)
        if path == "/version" and method == "GET":
            return 200, {"major": "1", "minor": self.minor, "gitVersion": "v1.%s.0" % self.minor}
        if path == "/api/v1/nodes/" + self.node and method == "GET":
            return 200, {"kind": "Node", "metadata": {"name": self.node, "uid": self.node_uid}}
        if path == SLICES and method == "GET":
            selector = urllib.parse.parse_qs(query)["fieldSelector"][0]
            assert selector == "spec.driver=%s,spec.nodeName=%s" % (DRIVER, self.node), selector
            return 200, {"kind": "ResourceSliceList",
                         "metadata": {"resourceVersion": str(self.version)},
                         "items": list(self.objects.values())}
        if path == SLICES and method == "POST":
            return self.write(body, None)
        name = path[len(SLICES) + 1:] if path.startswith(SLICES + "/") else None
        if name not in self.objects:
            return self.status(404, "not found")
        if method == "DELETE":
            return 200, self.remove(name)
        return self.write(body, self.objects[name]) if method == "PUT" else self.status(405, method)

    def write(self, body, before):
        name = body["metadata"]["name"]
        if before is None and name in self.objects:
            return self.status(409, "it is there already")
        if (before is not None
            and body["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]):
            return self.status(409, "the object has been modified")
        if not self.has_counters:  # a real server drops the fields of a disabled feature
            body["spec"].pop("sharedCounters", None)
            for device in body["spec"].get("devices", []):
                device.pop("consumesCounters", None)
        wrong = wrong_with(body["spec"])
        if wrong:
            return self.status(422, "invalid: " + wrong)
        owner, = body["metadata"]["ownerReferences"]
        assert owner["kind"] == "Node", owner
        body["metadata"]["resourceVersion"] = self.next_version()
        for device in body["spec"].get("devices", []):
            for taint in device.get("taints", []):
                taint["timeAdded"] = "2026-01-01T00:00:00Z"  # a real server adds it, too
        self.objects[name] = body
        self.tell("MODIFIED" if before else "ADDED", body)
        if owner["uid"] != self.node_uid:
            self.remove(name)  # as the garbage collector does, a little later
        return 200 if before else 201, body

    def take_event(self, namespace, event):
        """Checks what a real server checks of an event of a pod, or of a claim."""
        subject = event["involvedObject"]
        if (event["metadata"]["namespace"] != namespace or subject["namespace"] != namespace
            or event["type"] not in ("Normal", "Warning")):
            return self.status(422, "invalid event")
        if any(each["metadata"]["name"] == event["metadata"]["name"] for each in self.events):
            return self.status(409, "it is there already")
        self.events.append(event)
        return 201, event

    def found(self, claim, name):
        if claim:
            return 200, claim
        code, said = self.status(404, 'resourceclaims.resource.k8s.io "%s" not found' % name)
        said.update(reason="NotFound",
                    details={"name": name, "group": "resource.k8s.io", "kind": "resourceclaims"})
        return code, said

    @staticmethod
    def status(code, message):
        return code, {"kind": "Status", "status": "Failure", "message": message, "code": code}


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that disconnects is no mistake
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    api = None
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as in Go's servers

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def setup(self):
        super().setup()
        self.api.connections.append(self.connection)

    def serve(self):
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        api = self.api
        words = urllib.parse.parse_qs(query)
        method = "WATCH" if words.get("watch") == ["true"] else self.command
        with api.lock:
            api.calls[method, path] += 1
            failure = next((each for each in api.failures if each[1] in (None, method)), None)
            if failure:
                api.failures.remove(failure)
        if failure and failure[0] == 0:
            api.hung.wait()
            self.close_connection = True
            return
        if self.headers.get("Authorization") != "Bearer " + api.token:
            code, body = api.status(401, "Unauthorized")
        elif failure:
            code, body = api.status(failure[0], "told to fail")
        elif method == "WATCH":
            self.watch(int(words["resourceVersion"][0]))
            return
        else:
            with api.lock:
                code, body = api.answer(self.command, path, query,
                                        json.loads(text) if text else None)
        data = failure[2] if failure and failure[2] is not None else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def watch(self, version):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        # Sends the data in two halves, as a network may deliver it.
        def send(data):
            for part in (data[:len(data) // 2], data[len(data) // 2:]):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
        self.api.watch(version, send)
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_DELETE = serve

