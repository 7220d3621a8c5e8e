#!/usr/bin/env python3
"""Tests of the Helm chart of Kubernetes' plugins: what it renders for given values, and that its
parts agree with each other."""

import json
import os
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_docs  # noqa: E402
import kubernetes_manifests as manifests  # noqa: E402
from kubernetes_manifests import yaml  # noqa: E402

TEMPLATES = sorted(name for name in os.listdir(os.path.join(manifests.CHART, "templates"))
                   if name.endswith(".yaml"))
PROGRAMS = ("gpurota-dra", "gpurota-device-plugin", "gpurotad")
EVERYTHING = {"devicePlugin": {"enabled": True}, "daemon": {"enabled": True}}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def documents(more=None, namespace="gpurota"):
    """The objects that a cluster gets, by kind and name."""
    found = {}
    for text in manifests.rendered(TEMPLATES, more or {}, namespace):
        for each in yaml.safe_load_all(text):
            if each:
                key = each["kind"], each["metadata"]["name"]
                assert key not in found, key
                found[key] = each
    return found


def container(more, name):
    return documents(more)["DaemonSet", name]["spec"]["template"]["spec"]["containers"][0]


def leaves(value, path=""):
    """The paths of all values except non-empty dictionaries."""
    if isinstance(value, dict) and value:
        return [leaf for name, each in value.items() for leaf in leaves(each, path + "." + name)]
    return [path]


def properties(schema, path=""):
    if "properties" in schema:
        return [leaf for name, each in schema["properties"].items()
                for leaf in properties(each, path + "." + name)]
    return [path]


class Chart(unittest.TestCase):
    def test_has_the_driver_of_claims_and_no_device_plugin_unless_told(self):
        self.assertEqual([name for kind, name in documents() if kind == "DaemonSet"],
                         ["gpurota-dra"])
        both = documents({"devicePlugin": {"enabled": True}, "dra": {"enabled": False}})
        self.assertEqual({name for _, name in both}, {"gpurota-device-plugin"})

    def test_the_device_plugin_may_write_events_and_nothing_else(self):
        made = documents({"devicePlugin": {"enabled": True}, "dra": {"enabled": False}},
                         "elsewhere")
        self.assertEqual(made["ClusterRole", "gpurota-device-plugin"]["rules"],
                         [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}])
        subject, = made["ClusterRoleBinding", "gpurota-device-plugin"]["subjects"]
        account = made["ServiceAccount", "gpurota-device-plugin"]["metadata"]
        pod = made["DaemonSet", "gpurota-device-plugin"]["spec"]["template"]["spec"]
        self.assertEqual((subject["namespace"], subject["name"]),
                         (account["namespace"], account["name"]))
        self.assertEqual((account["namespace"], pod["serviceAccountName"]),
                         ("elsewhere", account["name"]))
        self.assertIn("--events", pod["containers"][0]["command"])

    def test_is_for_the_namespace_of_its_release(self):
        made = documents(namespace="elsewhere")
        self.assertEqual({each["metadata"].get("namespace", "elsewhere") for each in made.values()},
                         {"elsewhere"})
        policy = made["ValidatingAdmissionPolicy",
                      "gpurota-dra"]["spec"]["matchConditions"][0]["expression"]
        self.assertIn("system:serviceaccount:elsewhere:gpurota-dra", policy)
        self.assertEqual(made["ClusterRoleBinding", "gpurota-dra"]["subjects"][0]["namespace"],
                         "elsewhere")

    def test_mounts_where_it_says_that_things_are(self):
        more = {"kubeletDir": "/var/lib/k0s/kubelet", "runtimeDir": "/srv/gpurota",
                "dra": {"cdiDir": "/etc/cdi"}, "devicePlugin": {"enabled": True}}
        for name, places in (("gpurota-dra",
                              ["/var/lib/k0s/kubelet/plugins_registry", "/etc/cdi",
                               "/srv/gpurota"]),
                             ("gpurota-device-plugin",
                              ["/var/lib/k0s/kubelet/device-plugins",
                               "/var/lib/k0s/kubelet/pod-resources", "/srv/gpurota"])):
            pod = documents(more)["DaemonSet", name]["spec"]["template"]["spec"]
            on_host = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
            mounts = {mount["name"]: mount["mountPath"]
                      for mount in pod["containers"][0]["volumeMounts"]}
            self.assertEqual(set(mounts), set(on_host))
            for place in places:
                self.assertIn(place, mounts.values())
            self.assertEqual({name for name in mounts if mounts[name] != on_host[name]}, {"host"})
            self.assertIn("--kubelet-dir=/var/lib/k0s/kubelet", pod["containers"][0]["command"])

    def test_the_daemon_in_a_pod_sees_the_machine_and_gives_its_library_a_place_there(self):
        more = {"daemon": {"enabled": True, "libraryDir": "/opt/gpurota",
                           "runtimeClassName": "nvidia"}, "runtimeDir": "/srv/gpurota"}
        pod = documents(more)["DaemonSet", "gpurotad"]["spec"]["template"]["spec"]
        self.assertTrue(pod["hostPID"])
        self.assertEqual(pod["runtimeClassName"], "nvidia")
        self.assertNotIn("runtimeClassName",
                         documents({"daemon": {"enabled": True}})["DaemonSet",
                                                                  "gpurotad"]["spec"]["template"][
                                                                      "spec"])
        made = pod["containers"][0]
        self.assertIn({"name": "GPUROTA_RUNTIME_DIR", "value": "/srv/gpurota"}, made["env"])
        on_host = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]
                   if "hostPath" in volume}
        mounts = {mount["name"]: mount["mountPath"] for mount in made["volumeMounts"]}
        self.assertEqual(set(mounts), set(on_host) | {"config", "tmp"})
        # The daemon reports its paths to others, so they must be the same on the host.
        for name in ("runtime", "library", "state", "dev"):
            self.assertEqual(mounts[name], on_host[name])
        self.assertIn("--publish-library=" + mounts["library"], made["command"])
        self.assertIn("--runtime-dir=" + mounts["runtime"], made["command"])

    def test_says_what_the_programs_understand(self):
        for name in PROGRAMS:
            options = check_docs.options_of(ROOT, "man/%s.8" % name)
            words = container(EVERYTHING, name)["command"]
            self.assertEqual(words[0], "/usr/sbin/" + name)
            for word in words[1:]:
                self.assertIn(word.split("=")[0], options)

    def test_has_a_class_for_each_kind_of_lease_with_what_a_site_adds(self):
        made = documents({"dra": {"classes": {"turns": {"maxPriority": 5}},
                                  "extendedResources": {"gpu": ""}}})
        turns = made["DeviceClass", "turns.gpurota.dev"]["spec"]
        self.assertEqual(turns["config"][0]["opaque"]["parameters"],
                         {"apiVersion": "gpurota.dev/v1", "kind": "LeaseConfig", "share": "turns",
                          "maxPriority": 5})
        self.assertEqual(turns["extendedResourceName"], "gpurota.dev/turn")
        self.assertNotIn("extendedResourceName", made["DeviceClass", "gpu.gpurota.dev"]["spec"])
        self.assertFalse([kind for kind, _ in documents({"dra": {"classes": {"create": False}}})
                          if kind == "DeviceClass"])

    def test_adds_options_secrets_and_a_tag(self):
        made = container({"dra": {"args": ["--review=5"]},
                          "image": {"tag": "2.0", "pullSecrets": [{"name": "mine"}]}},
                         "gpurota-dra")
        self.assertEqual(made["command"][-1], "--review=5")
        self.assertEqual(made["image"], "localhost/gpurota-kubernetes:2.0")
        pods = documents(dict(EVERYTHING, image={"pullSecrets": [{"name": "mine"}]}))
        self.assertEqual([pods["DaemonSet", name]["spec"]["template"]["spec"]["imagePullSecrets"]
                          for name in PROGRAMS], [[{"name": "mine"}]] * 3)

    def test_every_value_is_used_and_known_to_the_schema(self):
        values = manifests.default_values()
        text = "".join(read(os.path.join(manifests.CHART, "templates", name))
                       for name in os.listdir(os.path.join(manifests.CHART, "templates")))
        used = set(re.findall(r"\.Values((?:\.\w+)+)", text))
        for leaf in leaves(values):
            self.assertTrue(any(leaf == path or leaf.startswith(path + ".") for path in used), leaf)
        schema = json.loads(read(os.path.join(manifests.CHART, "values.schema.json")))
        known = set(properties(schema)) - {".global"}
        for leaf in leaves(values):
            self.assertTrue(any(leaf == path or leaf.startswith(path + ".") for path in known),
                            leaf)
        for path in known:
            manifests.at(values, path)


class Manifests(unittest.TestCase):
    def test_have_the_namespace_in_a_file_of_its_own_so_that_deleting_one_keeps_the_others(self):
        kinds = {name: [each["kind"] for each in yaml.safe_load_all(text)]
                 for name, text in manifests.made().items()}
        self.assertEqual([name for name, found in kinds.items() if "Namespace" in found],
                         ["namespace.yaml"])
        self.assertEqual(kinds["namespace.yaml"], ["Namespace"])


class Templates(unittest.TestCase):
    def refused(self, text, words):
        with self.assertRaisesRegex(manifests.Refused, words):
            manifests.render(text, {"a": "b", "n": 7, "none": ""})

    def test_of_what_is_not_known_here_are_refused(self):
        self.refused("{{ include \"x\" . }}", "none of the actions")
        self.refused("{{ .Values.no }}", "there is no")
        self.refused("{{ .Values.n }}", "no text")
        self.refused("{{- if .Values.a }}", "end")
        self.refused("{{- if .Values.none }}x{{- else }}y{{- end }}", "none of the actions")

    def test_spaces_go_as_helm_has_it(self):
        text = ("x:\n  {{- if .Values.a }}\n  y: {{ .Values.a }}\n  {{- end }}\n  {{- if "
                ".Values.none }}\n  z\n  {{- end }}\nend\n")
        self.assertEqual(manifests.render(text, {"a": "b", "none": ""}), "x:\n  y: b\nend\n")


if __name__ == "__main__":
    unittest.main()
