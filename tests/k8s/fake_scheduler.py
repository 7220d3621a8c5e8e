"""A part of Kubernetes' scheduler (1.36) for tests: gives devices to claims, on one node.

    scheduler = FakeScheduler(api)
    results = scheduler.results_for(requests)      # None: the claim stays Pending

The scheduler knows device classes (those of packaging/kubernetes), `firstAvailable`, `count`,
capacity with its policy (`validRange`), devices that several claims may have
(`allowMultipleAllocations`), taints, and counters that devices share. The counters that a device
consumes count once, however many claims have the device. All combinations are tried in the order of
the slices, as the real scheduler does.
"""

import os
import re
import uuid

import yaml
from fake_api_server import DRIVER, amount

MANIFEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging",
                        "kubernetes", "dra.yaml")
TERM = re.compile(r'device\.driver == '
                  r'"gpurota\.dev"|device\.attributes\["gpurota\.dev"\]\.(\w+)(?: == "(\w+)")?$')


class DeviceClass:
    def __init__(self, manifest):
        self.configs = manifest["spec"]["config"]
        self.terms = [TERM.match(term.strip()) for selector in manifest["spec"]["selectors"]
                      for term in selector["cel"]["expression"].split("&&")]
        assert all(self.terms), manifest

    def has(self, device):
        for term in self.terms:
            name, text = term.groups()
            if (name and device["attributes"][name] != ({"string": text} if text
                                                        else {"bool": True})):
                return False
        return True


def classes():
    with open(MANIFEST, encoding="utf-8") as file:
        return {each["metadata"]["name"]: DeviceClass(each) for each in yaml.safe_load_all(file)
                if each["kind"] == "DeviceClass"}


def consumed(device, wanted):
    """The bytes of a device's memory that a claim gets if it asks for `wanted` bytes (None: for no
    amount); None if the claim cannot have the device."""
    capacity = device["capacity"]["memory"]
    value = amount(capacity["value"])
    if not device.get("allowMultipleAllocations"):
        return value if (wanted or 0) <= value else None
    policy = capacity["requestPolicy"]
    if wanted is None:
        return amount(policy["default"])
    least = amount(policy["validRange"]["min"])
    step = amount(policy["validRange"].get("step", "1"))
    found = least + max(0, -(-(wanted - least) // step)) * step
    return found if found <= amount(policy["validRange"].get("max", capacity["value"])) else None


class Attempt:
    """The devices and counters that are taken by claims that have devices, and by the claim that is
    being tried."""

    def __init__(self, devices, counters, results):
        self.devices, self.left = devices, counters
        self.memory = {}  # of each device that a claim has
        self.chosen = []
        for each in results:
            self.take(devices.get(each["device"]), each["device"],
                      amount(each.get("consumedCapacity", {}).get("memory", "0")))

    def take(self, device, name, memory):
        if device and name not in self.memory:
            self.count(device, -1)
        self.memory[name] = self.memory.get(name, 0) + memory

    def count(self, device, sign):
        for taken in device.get("consumesCounters", []):
            for name, value in taken["counters"].items():
                self.left[taken["counterSet"]][name] += sign * amount(value["value"])

    def fits(self, device, memory):
        name = device["name"]
        if name in self.memory:
            capacity = amount(device["capacity"]["memory"]["value"])
            return (device.get("allowMultipleAllocations", False)
                    and self.memory[name] + memory <= capacity)
        self.count(device, -1)
        enough = all(value >= 0 for taken in device.get("consumesCounters", [])
                     for value in self.left[taken["counterSet"]].values())
        self.count(device, 1)
        return enough and memory <= amount(device["capacity"]["memory"]["value"])

    def choose(self, request, device, memory):
        before = self.memory.get(device["name"])
        self.take(device, device["name"], memory)
        self.chosen.append((request, device, memory))
        return before

    def give_back(self, before):
        _, device, _ = self.chosen.pop()
        if before is None:
            del self.memory[device["name"]]
            self.count(device, 1)
        else:
            self.memory[device["name"]] = before


class FakeScheduler:
    def __init__(self, api):
        self.api, self.classes = api, classes()

    def taken(self):
        """The results of all claims that have their devices."""
        with self.api.lock:
            claims = list(self.api.claims.values())
        return [each for claim in claims
                for each in claim["status"].get("allocation",
                                                {}).get("devices", {}).get("results", [])
                if each["driver"] == DRIVER]

    def results_for(self, requests):
        attempt = Attempt(*self.api.pool(), self.taken())
        if not self.place(attempt, requests, 0):
            return None
        return [self.result(*each) for each in attempt.chosen]

    @staticmethod
    def result(request, device, memory):
        found = {"request": request, "driver": DRIVER, "pool": "node-1", "device": device["name"]}
        if device.get("allowMultipleAllocations"):
            found.update(consumedCapacity={"memory": str(memory)}, shareID=str(uuid.uuid4()))
        return found

    def configs_for(self, requests, results):
        """The configurations of the lease, from the device classes of the chosen alternatives."""
        names = {each["request"] for each in results}
        wanted = [(request["name"], request["exactly"]) for request in requests
                  if "exactly" in request]
        wanted += [("%s/%s" % (request["name"], each["name"]), each) for request in requests
                   for each in request.get("firstAvailable", [])]
        return [{"source": "FromClass", "requests": [name], **config} for name, each in wanted
                if name in names
                for config in self.classes[each["deviceClassName"]].configs]

    def place(self, attempt, requests, index):
        if index == len(requests):
            return True
        request = requests[index]
        alternatives = [(request["name"], request["exactly"])] if "exactly" in request else [
            ("%s/%s" % (request["name"], each["name"]), each) for each in request["firstAvailable"]]
        return any(self.place_one(attempt, name, each, (each.get("count", 1), 0),
                                  lambda: self.place(attempt, requests, index + 1))
                   for name, each in alternatives)

    def place_one(self, attempt, name, wanted, todo, then):
        """Places one device. `todo`: how many devices are left, and the first one to try. The order
        of devices within a request does not matter."""
        count, start = todo
        if count == 0:
            return then()
        asked = wanted.get("capacity", {}).get("requests", {}).get("memory")
        for position, device in list(enumerate(attempt.devices.values()))[start:]:
            if device.get("taints") or not self.classes[wanted["deviceClassName"]].has(device):
                continue
            memory = consumed(device, amount(asked) if asked else None)
            if memory is None or not attempt.fits(device, memory):
                continue
            before = attempt.choose(name, device, memory)
            if self.place_one(attempt, name, wanted, (count - 1, position + 1), then):
                return True
            attempt.give_back(before)
        return False
