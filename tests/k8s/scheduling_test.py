"""Tests what gpurota-dra publishes for two GPUs of 8 GiB, by what a scheduler (fake_scheduler.py)
allocates from it. All allocations of a case happen in the same second, and no claim is prepared. So
the driver does not know the claims that already have devices.
"""

import unittest

from dra_case import DraCase
from fake_api_server import config
from fake_kubelet import wait_until
from fake_scheduler import FakeScheduler


def request(kind, memory=None, count=1, name="gpu"):
    wanted = {"deviceClassName": kind + ".gpurota.dev", "count": count}
    if memory:
        wanted["capacity"] = {"requests": {"memory": memory}}
    return {"name": name, "exactly": wanted}


class Scheduling(DraCase):
    def setUp(self):
        super().setUp()
        self.scheduler, self.made, self.claim = FakeScheduler(self.api), 0, None

    def begin(self, *arguments):
        """Starts the plugin, after removing the slices that the previous driver may have published
        differently."""
        self.api.remove_slices()
        self.start_plugin(*arguments)

    def given(self, *requests):
        """The devices that a new claim is given; None if it stays Pending."""
        results = self.scheduler.results_for(requests)
        if results is None:
            return None
        self.made += 1
        self.claim = self.api.allocate("default", "claim-%d" % self.made, results,
                                       self.scheduler.configs_for(requests, results)
                                       + [config("FromClaim", leasePer="request")])
        self.claim["spec"] = {"devices": {"requests": requests}}
        return [each["device"] for each in results]

    def names(self):
        return [self.device_names(kind) for kind in ("whole", "memory", "turns")]

    def test_a_whole_gpu_is_never_given_beside_turns_or_slices_of_the_same_second(self):
        self.begin()
        whole, memory, turns = self.names()
        first = self.given(request("gpu"))
        self.assertIn(first[0], whole)
        other = 1 - whole.index(first[0])
        self.assertEqual(self.given(request("turns")), [turns[other]])
        self.assertEqual(self.given(request("turns", "1Gi")), [turns[other]],
                         "several may have that one")
        self.assertIsNone(self.given(request("memory", "1Gi")), "turns have the other GPU")
        self.assertIsNone(self.given(request("gpu")))
        self.api.claims.popitem()
        self.api.claims.popitem()
        self.assertEqual(self.given(request("memory", "1Gi")), [memory[other]])

    def test_containers_that_want_a_whole_gpu_and_turns_get_one_each_and_start(self):
        self.begin()
        for requests in ((request("gpu", name="a"), request("turns", name="b")),
                         (request("turns", name="a"), request("gpu", name="b"))):
            wait_until(lambda requests=requests: self.given(*requests),
                       "both, which may have to be published yet")
            devices = [each["device"]
                       for each in self.claim["status"]["allocation"]["devices"]["results"]]
            self.assertEqual(len({name.removesuffix("-whole").removesuffix("-turns")
                                  for name in devices}), 2, devices)
            self.prepared(self.claim)
            self.assertEqual(self.kubelet.unprepare(self.claim), [""])
            self.wait_for_leases(lambda leases: leases == [])
            self.api.claims.clear()

    def test_two_whole_gpus_are_two_also_with_a_capacity_and_without_counters(self):
        for minor in ("36", "34"):
            with self.subTest(minor=minor):
                self.api.minor = minor
                self.begin()
                devices = [self.given(request("gpu", "7Gi")), self.given(request("gpu", "7Gi"))]
                self.assertEqual(sorted(device for device, in devices), self.device_names("whole"))
                self.assertIsNone(self.given(request("gpu")))
                self.api.claims.clear()
                self.stop_plugin()

    def test_more_than_one_claim_can_have_stays_pending(self):
        self.begin()
        for kind in ("gpu", "memory", "turns"):
            self.assertIsNone(self.given(request(kind, "9Gi")), kind)

    def test_two_requests_of_one_claim_share_a_gpu_as_two_claims_do(self):
        self.begin()
        _, memory, _ = self.names()
        self.assertEqual(len(self.given(request("gpu"))), 1)
        first, second = self.given(request("memory", "2Gi", name="a"),
                                   request("memory", "3Gi", name="b"))
        self.assertEqual(first, second)
        self.assertIn(first, memory)
        self.assertEqual(self.given(request("memory", "2Gi")), [first])
        self.assertIsNone(self.given(request("memory", "1Gi")), "7 GiB are given")
        self.prepared(self.claim)

    def test_slices_and_turns_are_on_one_gpu_only_where_they_may_be_mixed(self):
        self.begin()
        self.assertEqual(len(self.given(request("memory", "2Gi", count=2))), 2)
        self.assertIsNone(self.given(request("turns", "1Gi")))
        self.stop_plugin()
        self.begin("--mixed")
        self.assertEqual(len(self.given(request("turns", "1Gi"))), 1)
        self.assertIsNone(self.given(request("gpu")))

    def test_of_alternatives_the_first_that_can_be_had(self):
        self.begin()
        wanted = [dict(request("gpu", count=3)["exactly"], name="three"),
                  dict(request("memory", "4Gi")["exactly"], name="part")]
        devices = self.given({"name": "gpu", "firstAvailable": wanted})
        self.assertIn(devices[0], self.device_names("memory"))
        self.assertEqual(self.claim["status"]["allocation"]["devices"]["results"][0]["request"],
                         "gpu/part")
        self.prepared(self.claim)


if __name__ == "__main__":
    unittest.main(verbosity=2)
