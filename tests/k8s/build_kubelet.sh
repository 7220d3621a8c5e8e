#!/bin/bash
# Builds programs of Kubernetes 1.20.2 from Debian 12's source package with Debian's Go:
# build_kubelet.sh FOLDER [PROGRAM…] makes FOLDER/bin/PROGRAM, by default kubelet. The script takes
# the source from the machine's own Debian mirror and nothing else from the network. kubelet takes
# one or two minutes of two processors, and 3 GB; kube-apiserver, kube-scheduler and
# kube-controller-manager take three times as much.
set -euo pipefail
version=1.20.5+really1.20.2
folder=$(realpath -m "$1")
shift
missing=()
for program in "${@:-kubelet}"; do [ -x "$folder/bin/$program" ] || missing+=("$program"); done
[ ${#missing[@]} != 0 ] || exit 0
for tool in go:golang-go dpkg-source:dpkg-dev rsync:rsync; do
  command -v "${tool%%:*}" >/dev/null ||
    { echo "${tool%%:*} is not installed: apt-get install ${tool##*:}"; exit 77; }
done
mkdir -p "$folder"/{bin,source,lists/partial,go/src/k8s.io/kubernetes}
# Uses the mirrors that this machine has configured, for source packages instead of binary ones.
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources \
  >"$folder/debian.sources"
options=(-o "Dir::Etc::sourcelist=$folder/debian.sources" -o Dir::Etc::sourceparts=/dev/null \
  -o "Dir::State::Lists=$folder/lists")
archive=$folder/source/kubernetes_$version.orig.tar.gz
if [ ! -f "$archive" ]; then
  apt-get "${options[@]}" update -qq
  (cd "$folder/source" && apt-get "${options[@]}" source \
    -qq --download-only "kubernetes=$version-1.1+deb12u1")
fi
tar -xzf "$archive" -C "$folder/go/src/k8s.io/kubernetes" --strip-components=1
# The go.mod of Kubernetes 1.20 does not follow the rules of modules, so this builds without
# modules, as Debian does.
cd "$folder/go/src/k8s.io/kubernetes"
export CGO_ENABLED=0 GO111MODULE=off GOPATH=$folder/go GOCACHE=$folder/cache GOFLAGS='' GOPROXY=off
# The API server needs code that is generated from the other sources.
case " ${missing[*]} " in
  *" kube-apiserver "*)
    make generated_files >"$folder/generated.log" 2>&1 ||
      { tail -20 "$folder/generated.log"; exit 1; }
    ;;
esac
package=k8s.io/kubernetes/vendor/k8s.io/component-base/version
for program in "${missing[@]}"; do
  go build -tags providerless -o "$folder/bin/$program" \
    -ldflags "-X $package.gitVersion=v1.20.2 -X $package.gitMajor=1 -X $package.gitMinor=20" \
    "./cmd/$program"
done
rm -rf "$folder/cache" "$folder/go"
