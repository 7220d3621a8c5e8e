"""The requests of random pods, for all of gpurota's device classes. Used by random_claims_test.py,
and by random_claims.sh with the real scheduler.
"""

from fake_api_server import amount, config

GIB = 1 << 30


def of_class(name, memory=None, count=1):
    wanted = {"deviceClassName": name + ".gpurota.dev", "count": count}
    if memory:
        wanted["capacity"] = {"requests": {"memory": "%dGi" % memory}}
    return wanted


def most_of(devices):
    """The most GiB of each GPU that one claim can have, whatever its class."""
    found = [device["capacity"]["memory"].get("requestPolicy") for device in devices.values()]
    return min(amount(policy["default"]) for policy in found if policy) // GIB


class Wish:
    """The requests of a random pod."""

    def __init__(self, rng, most):
        self.requests, self.configs, self.annotations, self.pods = [], [], {}, ("train-0",)
        self.can_be = True
        rng.choice((self.whole, self.memory, self.memory, self.turns, self.turns, self.parts,
                    self.containers, self.alternatives, self.shared, self.too_much))(rng, most)

    def exactly(self, **wanted):
        self.requests += [{"name": name, "exactly": each} for name, each in wanted.items()]

    def whole(self, rng, most):
        asked = most if rng.random() < 0.3 else None
        self.exactly(gpu=of_class("gpu", asked, rng.choice((1, 1, 1, 2, 3))))

    def memory(self, rng, most):
        asked = rng.choice((1, 4, 10, 20, 40, 60, most))
        self.exactly(gpu=of_class("memory", asked, rng.choice((1, 1, 1, 2))))

    def turns(self, rng, most):
        asked = rng.choice((None, 10, 40, most))
        self.exactly(gpu=of_class("turns", asked, rng.choice((1, 1, 1, 2))))

    @staticmethod
    def one(rng, most):
        return rng.choice((of_class("gpu"), of_class("memory", rng.choice((5, 30, 70))),
                           of_class("turns", rng.choice((None, 20, most)))))

    def parts(self, rng, most):
        self.exactly(**{"r%d" % i: self.one(rng, most) for i in range(rng.choice((2, 2, 3)))})
        self.configs = [config("FromClaim", leasePer="request")]

    def containers(self, rng, _most):
        for i in range(2):
            wanted = of_class(rng.choice(("gpu", "turns")), count=rng.choice((1, 1, 2)))
            self.exactly(**{"container-%d-request-0" % i: wanted})
        self.annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}

    def alternatives(self, rng, most):
        wanted = [dict(self.one(rng, most), name="a%d" % i) for i in range(3)]
        self.requests = [{"name": "gpu", "firstAvailable": wanted}]

    def shared(self, rng, most):
        self.memory(rng, most)
        self.pods = ("train-0", "train-1")

    def too_much(self, rng, most):
        kind = rng.choice(("memory", "turns", "gpu"))
        self.exactly(gpu=of_class(kind, most + rng.choice((20, 40, 100))))
        self.can_be = False

    def gpus(self):
        """The number of idle GPUs with which this wish can be fulfilled."""
        return sum(each["exactly"]["count"] if "exactly" in each else 1 for each in self.requests)
