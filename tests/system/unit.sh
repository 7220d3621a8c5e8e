#!/bin/bash
# The packaged unit under a real systemd: unit.sh PREFIX PROGRAM
#
# PREFIX is an installed gpurota, PROGRAM the demo's gpu_program. Starts systemd as the first process of
# namespaces of its own, on an overlay of this machine's root: nothing outside is changed, no other unit
# is started. Exits with 77, and says why, where that cannot be had (no root, no systemd, no overlayfs, no
# cgroup v2).
set -euo pipefail

skip() { echo "skipped: $*" && exit 77; }
fail() { echo "FAIL: $*" && exit 1; }

# In the new namespaces, as their first process: a root of its own, then systemd.
inside() {
  local dir=$1 prefix=$2 program=$3 root=$1/root
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$dir"
  mkdir "$dir/upper" "$dir/work" "$root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  # Below /home, /root or /tmp the unit would not see it.
  mkdir -p "$root/opt/gpurota"
  cp -a "$prefix/." "$root/opt/gpurota"
  cp "$program" "$root/opt/gpurota/bin/gpu_program"
  chmod -R go+rX "$root/opt/gpurota"

  local units=$root/etc/systemd/system
  rm -rf "$units" && mkdir -p "$units/gpurotad.service.d" "$root/run/gpurota-sim" "$root/var/lib/systemd"
  rm -rf "$root/var/lib/gpurota" "$root/etc/gpurota"
  chmod 1777 "$root/run/gpurota-sim"
  sed "s|$prefix|/opt/gpurota|g" "$prefix/lib/systemd/system/gpurotad.service" >"$units/gpurotad.service"
  grep -q '^ExecStart=/opt/gpurota/sbin/gpurotad$' "$units/gpurotad.service" || touch "$root/run/wrong-path"
  # The machine's GPUs are simulated, which takes files that the simulated driver may write.
  "$root/opt/gpurota/bin/gpurota-sim" --dir "$root/run/gpurota-sim/machine" --shared demo -- true
  printf '%s\n' '[Service]' 'Environment=GPUROTA_SIM_DIR=/run/gpurota-sim/machine' \
    'Environment=LD_LIBRARY_PATH=/opt/gpurota/lib/gpurota/sim' 'ReadWritePaths=/run/gpurota-sim' \
    >"$units/gpurotad.service.d/simulated.conf"
  printf '%s\n' '[Unit]' 'DefaultDependencies=no' 'AllowIsolate=yes' >"$units/test.target"
  exec chroot "$root" env -i container=test PATH="$PATH" /lib/systemd/systemd --system --unit=test.target \
    --log-target=console --show-status=no
}

if [ "${1:-}" = --inside ]; then shift && inside "$@"; fi
prefix=$(realpath "$1") program=$(realpath "$2")

[ "$(id -u)" = 0 ] || skip "needs root"
[ -x /lib/systemd/systemd ] || skip "systemd is not installed"
grep -qw overlay /proc/filesystems || skip "the kernel has no overlayfs"
cgroups=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
[ -n "$cgroups" ] || skip "no cgroup v2 is mounted"
own=$cgroups/gpurota-test-$$
mkdir "$own" 2>/dev/null || skip "$cgroups cannot be written"

dir=$(mktemp -d) log=$(mktemp)
(
  echo "$BASHPID" >"$own/cgroup.procs"
  exec unshare --mount --pid --fork --kill-child --cgroup --uts --ipc "$0" --inside "$dir" "$prefix" "$program"
) >"$log" 2>&1 </dev/null &
launcher=$!

finish() {
  local code=$?
  kill -KILL "$launcher" 2>/dev/null || true
  wait "$launcher" 2>/dev/null || true
  if [ "$code" != 0 ] && [ "$code" != 77 ]; then tail -n 60 "$log"; fi
  rm -rf "$log"
  rmdir "$dir" 2>/dev/null || true
  for _ in {1..50}; do
    find "$own" -depth -type d -exec rmdir {} + 2>/dev/null || true
    [ -d "$own" ] || break
    sleep 0.1
  done
}
trap finish EXIT

wait_until() {
  local end=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "still not true: $*"
    kill -0 "$launcher" 2>/dev/null || skip "systemd does not start here: $(tail -n 3 "$log")"
    sleep 0.1
  done
}
# in_there COMMAND…: beside systemd, with the environment of a user's shell on that machine.
in_there() {
  local pid
  pid=$(pgrep -P "$launcher" | head -n 1) || pid=$launcher
  nsenter -t "$pid" --mount --pid --cgroup --uts --ipc --root env -i -C / PATH="/opt/gpurota/bin:$PATH" \
    GPUROTA_SIM_DIR=/run/gpurota-sim/machine LD_LIBRARY_PATH=/opt/gpurota/lib/gpurota/sim "$@"
}
unit() { in_there systemctl "$@" gpurotad.service; }
main_pid() { unit show -P MainPID; }
leases() { in_there gpurota status --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["leases"]))'; }
has_leases() { [ "$(leases)" = "$1" ]; }

wait_until in_there systemctl is-active test.target
in_there test ! -e /run/wrong-path || fail "the unit does not name the programs where they are installed"

unit start || { unit status -n 40 || true; fail "the unit does not start"; }
[ "$(unit is-active)" = active ] || fail "started, but not active"
in_there gpurota doctor | grep -i error && fail "doctor has errors under the unit"
echo "ok it starts, and says so (Type=notify)"

in_there runuser -u nobody -- gpurota run --memory 1G -- gpu_program hold 256 >/dev/null 2>&1 &
wait_until has_leases 1
first=$(main_pid)
unit restart
[ "$(main_pid)" != "$first" ] || fail "restart left the old process"
wait_until has_leases 1
in_there pgrep -x gpu_program >/dev/null || fail "the restart ended a program"
echo "ok a restart loses no lease and no program"

kill_and_wait() {
  first=$(main_pid)
  in_there kill -KILL "$first"
  wait_until other_than "$first"
}
other_than() { [ "$(unit is-active)" = active ] && [ "$(main_pid)" != 0 ] && [ "$(main_pid)" != "$1" ]; }
kill_and_wait
wait_until has_leases 1
in_there pgrep -x gpu_program >/dev/null || fail "the death of the daemon ended a program"
echo "ok after kill -9 systemd starts the next, which takes the lease up"

in_there sh -c 'mkdir -p /etc/gpurota; echo "no such key = 1" >/etc/gpurota/gpurota.toml'
if unit reload; then fail "a bad configuration was taken over"; fi
in_there sh -c 'echo >/etc/gpurota/gpurota.toml'
unit reload || fail "reload fails"
echo "ok reload says whether the configuration was taken over"

in_there runuser -u nobody -- gpurota release --all
wait_until has_leases 0
if in_there pgrep -x gpu_program >/dev/null; then fail "the program outlives its lease"; fi
echo "ok a lease that ends takes the program of another user along (CAP_KILL)"

# A job is a unit of its own: another user's, outside of the daemon's, without its sandbox.
job() { in_there runuser -u nobody -- gpurota job "$@"; }
job_unit() { in_there systemctl list-units --plain --no-legend 'gpurota-job-*.service' | cut -d' ' -f1; }
logged() { job logs web | grep -q "$1"; }
job add web --workdir / --memory 1G --env GPUROTA_SIM_DIR --env LD_LIBRARY_PATH -- \
  sh -c 'id -un; grep -E "NoNewPrivs|Seccomp:" /proc/self/status; exec /opt/gpurota/bin/gpu_program hold 256'
wait_until logged holding || { job show web; fail "the job does not run"; }
logged '^nobody$' || fail "the job is not its owner's"
logged 'NoNewPrivs:.*0' || fail "the job is in the daemon's sandbox"
[ -n "$(job_unit)" ] || fail "the job has no unit of its own"
in_there systemctl show -P ControlGroup "$(job_unit)" | grep -q gpurota-jobs.slice || fail "the job is not in its slice"
program=$(in_there pgrep -x gpu_program)
unit restart
kill_and_wait
wait_until has_leases 1
[ "$(in_there pgrep -x gpu_program)" = "$program" ] || fail "a restart ended a job"
job stop web
wait_until has_leases 0
[ "$(job show web --json | grep -c '"reason": "stopped"')" = 1 ] || fail "why the job ended is not known"
no_job_unit() { [ -z "$(job_unit)" ]; }
wait_until no_job_unit
echo "ok a job of another user is a unit of its own, and no restart of the daemon ends it"

unit stop
[ "$(unit show -P Result)" = success ] || fail "stop: $(unit show -P Result)"
in_there test -e /var/lib/gpurota/gpurota.db -o -d /var/lib/gpurota || fail "no state is kept"
echo "ok it stops"
