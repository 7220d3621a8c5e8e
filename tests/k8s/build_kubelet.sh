#!/bin/bash
# Builds kubelet 1.20.2 of Debian 12's source package with Debian's Go: build_kubelet.sh FOLDER makes FOLDER/bin/kubelet. It takes the
# source from the machine's own Debian mirror and nothing else of the network; a minute or two of two processors, and 3 GB.
set -euo pipefail
version=1.20.5+really1.20.2
folder=$(realpath -m "$1")
if [ -x "$folder/bin/kubelet" ]; then exit 0; fi
for tool in go:golang-go dpkg-source:dpkg-dev; do
  command -v "${tool%%:*}" >/dev/null || { echo "${tool%%:*} is not installed: apt-get install ${tool##*:}"; exit 77; }
done
mkdir -p "$folder"/{bin,source,lists/partial,go/src/k8s.io/kubernetes}
# The mirrors that this machine has already, for sources instead of packages.
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$folder/debian.sources"
options=(-o "Dir::Etc::sourcelist=$folder/debian.sources" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::Lists=$folder/lists")
apt-get "${options[@]}" update -qq
(cd "$folder/source" && apt-get "${options[@]}" source -qq --download-only "kubernetes=$version-1.1+deb12u1")
tar -xzf "$folder/source/kubernetes_$version.orig.tar.gz" -C "$folder/go/src/k8s.io/kubernetes" --strip-components=1
# Its go.mod is older than the rules for modules; Debian builds it in the old way, too.
cd "$folder/go/src/k8s.io/kubernetes"
CGO_ENABLED=0 GO111MODULE=off GOPATH=$folder/go GOCACHE=$folder/cache GOFLAGS='' GOPROXY=off \
  go build -tags providerless -ldflags '-X k8s.io/component-base/version.gitVersion=v1.20.2' -o "$folder/bin/kubelet" ./cmd/kubelet
rm -rf "$folder/cache" "$folder/go"
