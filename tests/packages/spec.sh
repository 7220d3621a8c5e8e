#!/bin/bash
# rpm can read the spec of the RPMs: spec.sh SOURCE
set -euo pipefail
command -v rpmspec >/dev/null || { echo "rpmspec is not installed (package rpm)" && exit 77; }
said=$(rpmspec -P --define 'gpurota_version 1.2.3' --define 'gpurota_stage /stage' \
  "$1/packaging/rpm/gpurota.spec" 2>&1 >/dev/null)
[ -z "$said" ] || { echo "$said" && exit 1; }
