# The tests of portable.sh. machine.sh sources this file when the machine has booted with another
# gpurota, which is removed first.
# shellcheck shell=bash disable=SC2154 # machine.sh sets `where`, `sim`, `dir` and `root`

holder=$where/bin/gpu_program
readonly WANTS=/etc/systemd/system/multi-user.target.wants/gpurotad.service
install_sh() {
  in_there /var/tarball/install.sh "$@" >"$dir/install" 2>&1 ||
    fail "install.sh $*: $(cat "$dir/install")"
}
says() {
  grep -q -- "$1" "$dir/install" || fail "install.sh does not say '$1': $(cat "$dir/install")"
}
state() { in_there systemctl is-active "$1" 2>/dev/null || true; }
is_there() { in_there test -e "$1"; }
machine=(--env GPUROTA_SIM_DIR --env LD_LIBRARY_PATH)
begin() {
  as alice gpurota run --gpu-ids 0 --memory 500M -- "$holder" hold 100 >"$dir/load" 2>&1 \
    </dev/null &
  as bob gpurota job add web --gpu-ids 1 --memory 500M "${machine[@]}" -- "$holder" hold 101 \
    >/dev/null
  wait_until is_running 100
  wait_until is_running 101
}
is_gone() { ! is_running "$1"; }

in_there systemctl disable --now gpurotad.socket gpurotad.service gpurota-web.socket \
  gpurota-web.service 2>/dev/null
in_there sh -c 'rm -rf /etc/systemd/system/gpurota*.service /etc/systemd/system/gpurotad.socket &&
  rm -rf /var/lib/gpurota /run/gpurota'
in_there systemctl daemon-reload
where=/usr/local
mkdir "$root/var/tarball"
tar -C "$root/var/tarball" --strip-components=1 -xf "$GPUROTA_MACHINE_TARBALL"

install_sh
says 'systemctl enable --now gpurotad.socket gpurotad'
[ "$(state gpurotad.service)" = inactive ] || fail "install.sh starts what nobody asked for"
install_sh --start
[ "$(state gpurotad.service)/$(state gpurotad.socket)" = active/active ] ||
  fail "--start does not start it"
is_there "$WANTS" || fail "--start does not enable it"
begin
echo "ok installed and started: a program and a job run"

before=$(main_pid) program=$(running 100) job=$(running 101)
install_sh
wait_until other_than "$before"
wait_until has_leases 2
[ "$(running 100)/$(running 101)" = "$program/$job" ] ||
  fail "an upgrade ended the program or the job"
echo "ok an upgrade restarts the daemon, and ends nobody"

in_there /usr/local/share/gpurota/install.sh --uninstall >"$dir/install" 2>&1 ||
  fail "--uninstall: $(cat "$dir/install")"
wait_until is_gone 101
is_running 100 || fail "--uninstall ended a program that gpurota run has started"
[ "$(state gpurotad.service)/$(state gpurotad.socket)" = inactive/inactive ] ||
  fail "--uninstall leaves the daemon: $(state gpurotad.service)"
! is_there "$WANTS" || fail "--uninstall leaves the daemon enabled"
is_there /var/lib/gpurota/gpurota.db || fail "--uninstall took the state along"
in_there kill "$(running 100)"
echo "ok --uninstall stops the daemon and the job, and keeps the state"

install_sh --start
as bob gpurota job show web >/dev/null || fail "the next installation does not find the state"
install_sh --purge
for gone in /usr/local/bin/gpurota /usr/local/lib/systemd/system/gpurotad.service /var/lib/gpurota \
  /etc/gpurota /run/gpurota "$WANTS"; do
  ! is_there "$gone" || fail "--purge leaves $gone"
done
[ "$(state gpurotad.service)" = inactive ] || fail "--purge leaves the daemon"
echo "ok --purge leaves nothing"

# The RPMs' scriptlets do the same. --nodeps: the dependencies are installed, but not as RPMs.
rpm_there() {
  in_there sh -c "exec rpm $*" >"$dir/install" 2>&1 || fail "rpm $*: $(cat "$dir/install")"
}
where=/usr
mkdir "$root/var/rpms"
cp "$(dirname "$GPUROTA_MACHINE_TARBALL")"/gpurota*.rpm "$root/var/rpms"
rpm_there --nodeps -i '/var/rpms/*.rpm'
[ "$(state gpurotad.service)/$(state gpurotad.socket)/$(state gpurota-web.service)/$(
  state gpurota-web.socket)" = active/active/active/active ] || fail "rpm -i does not start all"
is_there "$WANTS" || fail "rpm -i does not enable the daemon"
begin
before=$(main_pid) program=$(running 100) job=$(running 101)
rpm_there --nodeps -U --force '/var/rpms/*.rpm'
wait_until other_than "$before"
wait_until has_leases 2
[ "$(running 100)/$(running 101)" = "$program/$job" ] || fail "rpm -U ended the program or the job"
rpm_there -e gpurota-burn gpurota-web gpurota gpurota-sim
wait_until is_gone 101
is_running 100 || fail "rpm -e ended a program that gpurota run has started"
[ "$(state gpurotad.service)/$(state gpurotad.socket)" = inactive/inactive ] ||
  fail "rpm -e leaves the daemon: $(state gpurotad.service)"
for gone in "$WANTS" /run/gpurota /usr/sbin/gpurotad; do
  ! is_there "$gone" || fail "rpm -e leaves $gone"
done
echo "ok RPMs start it, restart it, and stop it with its job"
