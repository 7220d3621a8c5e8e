#!/bin/bash
# Builds the programs of Kubernetes 1.20.2 that cluster.sh needs: build_cluster.sh FOLDER makes
# FOLDER/bin, as build_kubelet.sh does. Takes about ten minutes of two processors.
set -euo pipefail
exec "$(dirname "$(realpath "$0")")/build_kubelet.sh" "$1" kube-apiserver kube-controller-manager \
  kube-scheduler kubelet kubectl
