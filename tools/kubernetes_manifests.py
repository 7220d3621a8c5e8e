#!/usr/bin/env python3
"""Makes packaging/kubernetes/*.yaml, for users without Helm, from the chart beside them, with its
default values.

    tools/kubernetes_manifests.py            writes them
    tools/kubernetes_manifests.py --check    says whether they are as they would be written; runs \
as a test

This script knows only the actions of Helm's templates that the chart uses, and refuses all others,
so that its output is what Helm makes: {{- if PATH }}, {{- with PATH }}, {{- end }}, {{ PATH }},
{{ PATH | default PATH }}, {{- toYaml PATH | nindent N }}.
"""

import os
import re
import sys
import textwrap

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "packaging", "kubernetes")
CHART = os.path.join(FOLDER, "chart")
NAMESPACE = "gpurota"
# By file: its purpose, its values other than the default ones, and the templates that it is made
# of.
FILES = {
    # The namespace has its own file, so that `kubectl delete -f` of another file keeps it.
    "namespace.yaml": ("The namespace of gpurota, for the other manifests.", {}, ()),
    "dra.yaml": ("gpurota-dra on each node with the label gpurota.dev/node=true, beside a gpurotad "
                 "of the node, for Kubernetes 1.34 or newer.",
                 {}, ("classes.yaml", "access.yaml", "dra.yaml")),
    "gpurotad.yaml": ("gpurotad on each node with the label gpurota.dev/node=true that does not "
                      "have its package.",
                      {"daemon": {"enabled": True}}, ("daemon.yaml",)),
    "device-plugin.yaml": ("gpurota-device-plugin on each node with the label "
                           "gpurota.dev/node=true, beside a gpurotad of the node.",
                           {"devicePlugin": {"enabled": True}},
                           ("device-plugin-access.yaml", "device-plugin.yaml")),
}
HEAD = """\
# %s
# docs/operate/kubernetes.md
#
# Made of the chart beside this, by tools/kubernetes_manifests.py.
"""
HEAD_OF_PODS = (HEAD.rstrip("\n") +
                """ `./dev image` makes the image; with a registry, write its name there below.
# `kubectl apply -f namespace.yaml` comes first.
""")
NAMESPACE_ITSELF = """\
apiVersion: v1
kind: Namespace
metadata:
  name: gpurota
  labels:
    # Pods run as root, with folders of the machine.
    pod-security.kubernetes.io/enforce: privileged
"""
ACTION = re.compile(r"(\s*)\{\{(-?) *(.*?) *\}\}")
PATH = r"\.[A-Za-z.]*"


class Refused(Exception):
    """The template has something that this script does not know."""


def at(dot, path):
    """A value by its path. A missing value is a mistake here, though Helm would treat it as
    empty."""
    for name in filter(None, path.split(".")):
        if not isinstance(dot, dict) or name not in dot:
            raise Refused("there is no %s" % path)
        dot = dot[name]
    return dot


BLOCK = re.compile(r"(if|with) (%s)" % PATH)
LIST = re.compile(r"toYaml (%s) \| nindent ([0-9]+)" % PATH)
TEXT = re.compile(r"(%s)(?: \| default (%s))?" % (PATH, PATH))


def check(action, trims):
    """Refuses unknown actions, even in branches that are not rendered. Only an action that prints a
    value may keep the white space before it."""
    known = action == "end" or BLOCK.fullmatch(action) or LIST.fullmatch(action)
    if not (known and trims) and not TEXT.fullmatch(action):
        raise Refused("{{ %s }} is none of the actions that are known here" % action)


def shown(dot, action):
    match = LIST.fullmatch(action)
    if match:
        text = yaml.safe_dump(at(dot, match.group(1)), default_flow_style=False,
                              width=1000).rstrip("\n")
        return "\n" + textwrap.indent(text, " " * int(match.group(2)))
    match = TEXT.fullmatch(action)
    value = at(dot, match.group(1)) or (at(dot, match.group(2)) if match.group(2) else "")
    if not isinstance(value, str):
        raise Refused("{{ %s }} is no text" % action)
    return value


def render(template, values, namespace=NAMESPACE):
    """The text that Helm makes of a template of the chart."""
    with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as file:
        chart = yaml.safe_load(file)
    scope = {"Values": values, "Release": {"Namespace": namespace},
             "Chart": {"AppVersion": str(chart["appVersion"])}}
    out, begin, dots = [], 0, [(scope, True)]
    for match in ACTION.finditer(template):
        dot, on = dots[-1]
        space, trims, action = match.groups()
        check(action, trims)
        if on:
            out.append(template[begin:match.start()] + ("" if trims else space))
        begin = match.end()
        block = BLOCK.fullmatch(action)
        if block:
            value = at(dot, block.group(2)) if on else None
            dots.append((value if block.group(1) == "with" else dot, on and bool(value)))
        elif action == "end":
            dots.pop()
        elif on:
            out.append(shown(dot, action))
    if len(dots) != 1:
        raise Refused("an {{- end }} is missing")
    return "".join(out) + template[begin:]


def merged(values, more):
    """The values of a file merged into the default ones, as Helm does it."""
    result = dict(values)
    for name, value in more.items():
        result[name] = (merged(result[name], value) if isinstance(value, dict)
                        and isinstance(result.get(name), dict) else value)
    return result


def default_values():
    with open(os.path.join(CHART, "values.yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


def rendered(names, more, namespace=NAMESPACE):
    """The texts of these templates."""
    texts = []
    for name in names:
        with open(os.path.join(CHART, "templates", name), encoding="utf-8") as file:
            try:
                texts.append(render(file.read(), merged(default_values(), more),
                                    namespace).strip("\n") + "\n")
            except Refused as why:
                raise Refused("%s: %s" % (name, why)) from None
    return texts


def made():
    """The text of each file."""
    return {name: HEAD_OF_PODS % purpose + "---\n".join(rendered(templates, more)) if templates
            else HEAD % purpose + NAMESPACE_ITSELF
            for name, (purpose, more, templates) in FILES.items()}


def main(arguments):
    status = 0
    for name, text in made().items():
        path = os.path.join(FOLDER, name)
        if arguments == ["--check"]:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    print("packaging/kubernetes/%s is not as the chart says: run "
                          "tools/kubernetes_manifests.py" % name)
                    status = 1
        elif arguments:
            print(__doc__, file=sys.stderr)
            return 2
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
