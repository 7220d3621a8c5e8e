"""gpurota-device-plugin between a fake kubelet and a gpurotad on simulated GPUs (two of 8 GiB)."""


import unittest




from kubelet_case import GPU, MEMORY, TURN, KubeletCase


class FromRegistrationToALimit(KubeletCase):
    def test_a_container_with_two_units_of_memory_is_refused_more_than_2_gib(self):
        self.start_plugin()
        self.assertEqual(len(self.kubelet.devices(MEMORY)), 16)
        container = self.kubelet.admit("default", "train-0", "main", MEMORY, 2)
        self.assertEqual(self.leases(), [])
        program = self.run_in(container, "greedy", "64")
        line = self.wait_for_line(program, "refused at")
        self.assertRegex(line, "refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY")
        lease, = self.leases()
        self.assertEqual((lease["kind"], lease["share"], lease["gpus"][0]["limit_bytes"]), ("pod", "slice", 2 << 30))
        self.wait_for_leases(lambda leases: leases[0]["pod"] == {"namespace": "default", "name": "train-0", "container": "main"})
        program.kill()
        self.kubelet.remove(container)
        self.wait_for_leases(lambda leases: leases == [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
