"""The driver's limit of a pod, set by gpurotad for a claim that gpurota-dra prepares. The control
groups are simulated (tests/e2e/cgroup_tree.c)."""

# On the machine demo-r615.
import os
import shutil
import sys
import unittest

from dra_case import DraCase
from fake_kubelet import wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../e2e"))
from driver_limits import Driver  # noqa: E402

TREE = os.environ["GPUROTA_SIM_DIR"] + "/cgroup"


@unittest.skipUnless(os.path.exists(os.environ["E2E_CGROUP_TREE"]), "needs what the build has made")
class LimitOfAPod(DraCase):
    def setUp(self):
        shutil.rmtree(TREE, ignore_errors=True)
        os.mkdir(TREE)
        self.addCleanup(shutil.rmtree, TREE)
        self.driver = Driver()
        super().setUp()

    def start_daemon(self):
        self.write("gpurota.toml", 'enforcement = "driver"\n')
        self.environment["LD_PRELOAD"] = os.environ["E2E_CGROUP_TREE"]
        super().start_daemon()
        del self.environment["LD_PRELOAD"]

    def limits(self, group):
        """In MiB, on each of the two GPUs."""
        return [self.driver.get(group, gpu)[1] for gpu in range(2)]

    def test_a_claim_is_prepared_when_the_pod_has_its_limit(self):
        self.start_plugin()
        claim = self.allocate("a", "2Gi")
        uid = claim["status"]["reservedFor"][0]["uid"]
        self.assertIn("its pod has no control group of cgroup v2", self.refusal(claim))
        pod = TREE + "/kubepods/burstable/pod" + uid
        os.makedirs(pod)
        self.prepared(claim)
        lease, = self.leases()
        limits = [None, None]
        limits[lease["gpus"][0]["index"]] = 2048 + 512
        self.assertEqual(self.limits(pod), limits)
        self.assertEqual(lease["enforced_by"], "library_and_driver")
        self.assertEqual(self.kubelet.unprepare(claim), [""])
        self.wait_for_leases(lambda leases: not leases)
        wait_until(lambda: self.limits(pod) == [None, None], "the end of the limit")

    def test_a_claim_of_several_pods_is_refused_where_the_driver_must_limit_it(self):
        self.start_plugin()
        refusal = self.refusal(self.allocate("a", "2Gi", pods=("one", "two")))
        self.assertIn("it is not known which pod uses it, or several pods do", refusal)


if __name__ == "__main__":
    unittest.main(verbosity=2)
