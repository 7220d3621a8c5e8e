#!/bin/bash
# park.sh DIST [ROUNDS]: measures which calls and habits of a process work when the driver parks the
# process. Prints two tab-separated tables (tests/driver/parks/main.cpp describes the columns).
# Needs driver 570 or newer. DIST is what pack.sh made. A round takes about four minutes.
set -euo pipefail
dist=$(readlink -f "${1:?usage: park.sh DIST [ROUNDS]}")
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
"$dist/tests/driver/driver_parks" habits "${2:-2}" --at-once 4 2> /dev/null
"$dist/tests/driver/driver_parks" calls "${2:-2}" --at-once 30 2> /dev/null
