"""A Kubernetes of one node for cluster.sh: etcd, the API server, the scheduler, the controllers and
kubelet, each with rights of its own, and calls of the API server as an administrator. The tables of
differences() have what differs between versions.
"""

import glob
import json
import re
import secrets
import ssl
import subprocess
import urllib.error
import urllib.request

from real_node import Machine, wait_until

SERVER = "https://10.0.0.1:443"
NODE, SECOND = "node1", "node2"
ADDRESS = "10.254.0.1"
# By account: its user for the API server, and its groups. The controllers use accounts of their own
# in addition.
ACCOUNTS = {"admin": ("admin", "system:masters"), NODE: ("system:node:" + NODE, "system:nodes"),
            SECOND: ("system:node:" + SECOND, "system:nodes"),
            "kube-scheduler": ("system:kube-scheduler", ""),
            "kube-controller-manager": ("system:kube-controller-manager", "")}
ADDRESSES = "subjectAltName=IP:10.0.0.1,IP:10.254.0.1,IP:127.0.0.1,DNS:kubernetes.default.svc"

# The configuration is the same from 1.20 on.
KUBELET = {
    "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "healthzBindAddress": "127.0.0.1", "authorization": {"mode": "Webhook"},
    "syncFrequency": "2s", "nodeStatusUpdateFrequency": "2s", "cgroupDriver": "cgroupfs",
    "cgroupRoot": "/", "kubeletCgroups": "/",
    "oomScoreAdj": 0, "failSwapOn": False, "enforceNodeAllocatable": ["none"],
    "makeIPTablesUtilChains": False,
    "evictionHard": {"memory.available": "1Mi"}, "imageGCHighThresholdPercent": 100}


def network(subnet):
    """The configuration of the node's own network, which gives addresses to pods that do not use
    the host's network."""
    addresses = {"type": "host-local", "dataDir": "/var/lib/cni", "subnet": subnet}
    return json.dumps({"cniVersion": "0.4.0", "name": "node",
                       "plugins": [{"type": "ptp", "ipMasq": False, "ipam": addresses}]})


def differences(minor, endpoint):
    """The command line and settings that kubelet 1.MINOR needs, and the features to enable in all
    programs."""
    flags = [(0, 24, "--container-runtime=remote"),
             (0, 27, "--container-runtime-endpoint=" + endpoint)]
    settings = [(27, 999, {"containerRuntimeEndpoint": endpoint}),
                (31, 999, {"failCgroupV1": False})]
    features = [(34, 36, "DRAConsumableCapacity")]  # enabled by default from 1.36 on

    def chosen(table):
        return [what for first, end, what in table if first <= minor < end]
    return chosen(flags), {key: value for each in chosen(settings)
                           for key, value in each.items()}, chosen(features)


class Answer(Exception):
    """The API server has refused a call."""

    def __init__(self, code, text):
        super().__init__("%d: %s" % (code, text))
        self.code, self.text = code, text


class Cluster(Machine):
    def __init__(self, folder):
        super().__init__(folder)
        said = subprocess.run(["kube-apiserver", "--version"], capture_output=True, text=True,
                              check=True).stdout
        self.version = re.search(r"v([0-9]+)\.([0-9]+)\S*", said)
        self.minor = int(self.version.group(2))
        *_, self.features = differences(self.minor, "")
        self.write("cni/10-node.conflist", network("10.253.0.0/24"))
        self.make_certificates()
        self.make_accounts()
        self.context = ssl.create_default_context(cafile=self.path("ca.crt"))

    # The certificates and the accounts.

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.folder)

    def make_certificates(self):
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca", "-days",
                     "2", "-keyout", "ca.key", "-out", "ca.crt")
        self.openssl("genrsa", "-out", "accounts.key", "2048")
        self.write("server.ext", ADDRESSES)
        self.write("client.ext", "extendedKeyUsage=clientAuth")
        # The second certificate is the one that the API server shows to kubelet, for logs and
        # commands in pods.
        for name, subject in (("server", "/CN=kube-apiserver"),
                              ("client", "/O=system:masters/CN=kube-apiserver")):
            self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout",
                         name + ".key", "-out", name + ".csr")
            self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                         "-CAcreateserial", "-days", "2", "-extfile", name + ".ext", "-out",
                         name + ".crt")

    def make_accounts(self):
        lines = []
        for name, (user, group) in ACCOUNTS.items():
            token = secrets.token_hex(16)
            lines.append('%s,%s,%s,"%s"\n' % (token, user, name, group))
            self.write(name + ".kubeconfig", json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "test",
                              "cluster": {"server": SERVER,
                                          "certificate-authority": self.path("ca.crt")}}],
                "users": [{"name": name, "user": {"token": token}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}]}))
            if name == "admin":
                self.token = token
        self.write("tokens.csv", "".join(lines))

    # The programs of the control plane.

    def start_control_plane(self):
        self.spawn("etcd", "etcd", "--data-dir", self.path("etcd"),
                   "--listen-client-urls=http://127.0.0.1:2379",
                   "--advertise-client-urls=http://127.0.0.1:2379",
                   "--listen-peer-urls=http://127.0.0.1:2380")
        self.start_api_server()
        features = self.feature_flags()
        self.spawn("kube-scheduler", "kube-scheduler",
                   "--kubeconfig=" + self.path("kube-scheduler.kubeconfig"), "--leader-elect=false",
                   "--bind-address=127.0.0.1", *features)
        self.spawn("kube-controller-manager", "kube-controller-manager",
                   "--kubeconfig=" + self.path("kube-controller-manager.kubeconfig"),
                   "--leader-elect=false", "--bind-address=127.0.0.1",
                   "--use-service-account-credentials=true", "--service-account-private-key-file="
                   + self.path("accounts.key"), "--root-ca-file=" + self.path("ca.crt"), *features)
        # The API server refuses pods until their account exists.
        wait_until(lambda: self.find("/api/v1/namespaces/default/serviceaccounts/default"),
                   "the account of pods")

    def feature_flags(self):
        return (["--feature-gates=" + ",".join(each + "=true" for each in self.features)]
                if self.features else [])

    def start_api_server(self):
        self.spawn("kube-apiserver", "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
                   "--secure-port=443", "--bind-address=0.0.0.0", "--advertise-address=10.254.0.1",
                   "--service-cluster-ip-range=10.0.0.0/24", "--cert-dir=" + self.path("apiserver"),
                   "--tls-cert-file=" + self.path("server.crt"),
                   "--tls-private-key-file=" + self.path("server.key"),
                   "--client-ca-file=" + self.path("ca.crt"),
                   "--token-auth-file=" + self.path("tokens.csv"), "--authorization-mode=Node,RBAC",
                   "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
                   "--service-account-key-file=" + self.path("accounts.key"),
                   "--service-account-signing-key-file=" + self.path("accounts.key"),
                   "--service-account-issuer=https://kubernetes.default.svc",
                   "--kubelet-client-certificate=" + self.path("client.crt"),
                   "--kubelet-client-key=" + self.path("client.key"),
                   "--kubelet-preferred-address-types=InternalIP", *self.feature_flags())
        wait_until(lambda: self.answers() or self.ended(), "the API server")
        assert not self.ended(), "the API server has ended"

    def start_kubelet(self):
        self.start_kubelet_of(self, NODE, ADDRESS)

    def start_kubelet_of(self, machine, name, address):
        flags, settings, _ = differences(self.minor, "unix://" + machine.path("ctd.sock"))
        who = {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
               "x509": {"clientCAFile": self.path("ca.crt")}}
        more = {"address": address, "authentication": who,
                "featureGates": {each: True for each in self.features}}
        machine.write("kubelet.json", json.dumps({**KUBELET, **more, **settings}))
        machine.spawn("kubelet", "kubelet", "--config=" + machine.path("kubelet.json"),
                      "--kubeconfig=" + self.path(name + ".kubeconfig"),
                      "--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki",
                      "--hostname-override=" + name, "--node-ip=" + address, "--v=2",
                      "--node-labels=gpurota.dev/node=true", *flags)

    def is_ready(self, name=NODE):
        node = self.find("/api/v1/nodes/" + name)
        return (node and any(each["type"] == "Ready" and each["status"] == "True"
                             for each in node["status"]["conditions"]))

    # The API server.

    def ask(self, method, path, body=None, user=None):
        """Calls the API server, as `user` if given."""
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json",
                   **({"Impersonate-User": user} if user else {})}
        request = urllib.request.Request(SERVER + path, method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Answer(error.code, error.read().decode()) from None

    def find(self, path):
        """The object at this path; None if there is none."""
        try:
            return self.ask("GET", path)
        except Answer as answer:
            if answer.code == 404:
                return None
            raise

    def answers(self):
        # The API server is ready when all objects that it makes itself exist.
        request = urllib.request.Request(SERVER + "/readyz",
                                         headers={"Authorization": "Bearer " + self.token})
        try:
            with urllib.request.urlopen(request, timeout=10, context=self.context) as answer:
                return answer.status == 200
        except OSError:
            return False

    def ended(self):
        """Programs that have ended by themselves."""
        return [name for name, each in self.processes.items() if each.poll() is not None]

    def last_words(self):
        """Prints the end of the logs of ended programs, and of gpurota's pods."""
        paths = [self.path(name + ".log")
                 for name in self.ended()] + glob.glob("/var/log/pods/gpurota_*/*/*.log")
        for path in paths:
            with open(path, encoding="utf-8") as file:
                print("--- %s\n%s" % (path, file.read()[-1500:]), flush=True)

    def kubectl(self, *words):
        """Runs kubectl; returns standard output and error together. A failure ends the test with
        that output."""
        done = subprocess.run(["kubectl", "--kubeconfig=" + self.path("admin.kubeconfig"), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        assert done.returncode == 0, "kubectl %s: %s" % (" ".join(words), done.stdout)
        return done.stdout

    def roll_out(self, name):
        """Waits until the newest pod of this DaemonSet is ready."""
        self.kubectl("rollout", "status", "daemonset/" + name, "--namespace=gpurota",
                     "--timeout=300s")

    def gpurota(self, *words):
        """Runs the command `gpurota` in gpurotad's pod, as root."""
        pod = self.kubectl("get", "pods", "--namespace=gpurota", "--selector=app=gpurotad",
                           "--output=name").strip()
        return self.kubectl("exec", "--namespace=gpurota", pod, "--", "gpurota", *words)
