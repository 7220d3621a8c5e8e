# The tests of machine.sh, which sources this file when the machine has booted.
# shellcheck shell=bash disable=SC2154 # machine.sh sets `where` and `sim`

hold=$where/bin/gpu_program # a job does not have its owner's PATH
machine=(--env GPUROTA_SIM_DIR --env LD_LIBRARY_PATH)

metrics() {
  in_there python3 -c 'import urllib.request as u; print(
    u.urlopen("http://127.0.0.1:9836/metrics").read().decode())'
}
logged() { shows "$2" as alice gpurota job logs "$1"; }
journal_has() { shows "$2" as alice journalctl --no-pager --quiet -t "gpurota-job-$1"; }
is_not_running() { ! is_running "$1"; }
cgroup_of() { in_there sed -n 's/^0:://p' "/proc/$1/cgroup"; }
no_logins() { [ -z "$(in_there loginctl list-sessions --no-legend)" ]; }
units_of() { in_there systemctl list-units --plain --no-legend "gpurota-$1-*.service"; }
no_units_of() { [ -z "$(units_of "$1")" ]; }

[ -z "$(in_there systemctl list-units --failed --no-legend)" ] ||
  fail "$(in_there systemctl --failed)"
page_units=() # stays empty for a build without the web page
if in_there systemctl cat gpurota-web.service >/dev/null 2>&1; then
  page_units=(gpurota-web.socket gpurota-web.service)
fi
complaints=$(in_there systemd-analyze verify gpurotad.socket gpurotad.service \
  "${page_units[@]}" 2>&1) || true
[ -z "$complaints" ] || fail "$complaints"
in_there systemd-analyze security --threshold=20 gpurotad.service >/dev/null ||
  fail "the unit is less locked up than it was: systemd-analyze security gpurotad.service"
in_there systemctl is-active gpurotad.socket >/dev/null ||
  fail "systemd does not listen for the daemon"
daemon_says 'gpurotad serves.*listens=systemd' || fail "the daemon was not given its sockets"
daemon_says 'gpurotad serves' || fail "the journal has no line of the daemon's"
in_there gpurota doctor >/dev/null || fail "$(in_there gpurota doctor)"
echo "ok it boots with its units, and systemd-analyze finds nothing in them"

web_pid() { in_there systemctl show -P MainPID gpurota-web.service; }
test_web() {
  # The group that the package adds raises the exposure by 0.1.
  in_there systemd-analyze security --threshold=10 gpurota-web.service >/dev/null ||
    fail "the unit is less locked up than it was: systemd-analyze security gpurota-web.service"
  wait_until shows '^gpurota_' metrics

  # Another user cannot take the port while the page is restarted, and clients that connect
  # meanwhile are answered.
  before=$(web_pid)
  # The loop ends when nobody listens on the port. If the port never becomes free, the timeout ends
  # the loop.
  as alice timeout 20 python3 -c '
import errno, socket, time
end = time.time() + 15
while time.time() < end:
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind(("127.0.0.1", 9836))
        s.listen()
    except OSError:
        s.close()
        time.sleep(0.001)
        continue
    print("taken", flush=True)
    break
else:
    print("never free", flush=True)' >"$dir/squatter" &
  squatter=$!
  wait_until shows ' python3 -c' in_there ps -u alice -o args
  in_there systemctl kill --signal=KILL gpurota-web.service
  wait_until shows '^gpurota_' metrics
  [ "$(web_pid)" != "$before" ] || fail "gpurota-web was not restarted"
  in_there systemctl restart gpurota-web.service
  wait_until shows '^gpurota_' metrics
  wait "$squatter" || true
  grep -q 'never free' "$dir/squatter" ||
    fail "another user has taken the port of gpurota-web: $(cat "$dir/squatter")"
  echo "ok the port of gpurota-web stays its own while it is killed and restarted"

  if ! shows 'built without the page' in_there journalctl \
    --no-pager --quiet -u gpurota-web.service; then
    wait_until shows '^http://127.0.0.1:9836/#sign-in=' as alice gpurota web --no-open
    echo "ok the user of its unit may sign people in at the web page"
  fi
}
if [ ${#page_units[@]} != 0 ]; then test_web; fi

in_there sh -c 'mkdir -p /etc/gpurota; echo "no such key = 1" >/etc/gpurota/gpurota.toml'
if in_there systemctl reload gpurotad.service 2>/dev/null; then
  fail "a bad configuration was taken over"
fi
in_there sh -c 'echo >/etc/gpurota/gpurota.toml'
in_there systemctl reload gpurotad.service || fail "reload fails"
echo "ok reload says whether the configuration was taken over"

# Device files with the driver's numbers. There is no driver, so an allowed open fails with "No such
# device".
opens() { shows 'No such device' as "$1" sh -c ': <"$1"' sh "/dev/$2"; }
is_refused() { shows 'Permission denied' as "$1" sh -c ': <"$1"' sh "/dev/$2"; }
if in_there sh -c 'mknod -m 666 /dev/nvidia0 c 195 0 && mknod -m 660 /dev/nvidia1 c 195 1' \
  2>/dev/null && opens alice nvidia0; then
  before=$(in_there stat -c '%a %U:%G' /dev/nvidia0 /dev/nvidia1)
  in_there sh -c 'printf "%s\n" "[access]" "strict = true" >/etc/gpurota/gpurota.toml'
  in_there systemctl reload gpurotad.service || fail "the section [access] is refused"
  wait_until is_refused alice nvidia0
  as alice gpurota reserve --gpu-ids 0 --memory 64M --for 1h >/dev/null
  opens alice nvidia0 || fail "a lease does not open its file: $(in_there gpurota doctor)"
  is_refused bob nvidia0 || fail "the lease of alice opens its file to bob"
  is_refused alice nvidia1 || fail "a lease opens the file of another GPU"
  in_there systemctl kill --signal=KILL gpurotad.service
  opens alice nvidia0 || fail "a daemon that is killed takes access back"
  wait_until shows 'strict access.*2 device files' in_there gpurota doctor
  as alice gpurota release --all >/dev/null
  wait_until is_refused alice nvidia0
  in_there sh -c 'echo >/etc/gpurota/gpurota.toml'
  in_there systemctl reload gpurotad.service
  [ "$(in_there stat -c '%a %U:%G' /dev/nvidia0 /dev/nvidia1)" = "$before" ] ||
    fail "strict access is off, and the files are not as before"
  in_there rm /dev/nvidia0 /dev/nvidia1
  echo "ok strict access closes device files in the sandbox of the unit, and restores them"
fi

# The driver's own limits, by the real control groups of logins and jobs.
limit_of() { in_there python3 -B - get "/sys/fs/cgroup$1" <"$tests/../e2e/driver_limits.py"; }
limit_is() { [ "$(limit_of "$1")" = "$2" ]; }
enforcement_is() { shows "\"enforced_by\": *\"$1\"" in_there gpurota status --json; }
without_library=(env -u LD_PRELOAD "$hold" hold)
in_there sh -c 'echo "enforcement = \"driver\"" >/etc/gpurota/gpurota.toml'
in_there systemctl reload gpurotad.service || fail "enforcement is refused"
shows OUT_OF_MEMORY login alice gpurota run --memory 1G -- "${without_library[@]}" 2000 ||
  fail "the driver does not limit a program in a login"
login alice gpurota job add evading --restart no --memory 1G "${machine[@]}" -- \
  "${without_library[@]}" 2001
wait_until logged evading OUT_OF_MEMORY
login alice gpurota job remove --force evading
wait_until has_leases 0
login alice gpurota run --memory 1G -- "${without_library[@]}" 700 >/dev/null 2>&1 &
wait_until is_running 700
wait_until enforcement_is library_and_driver
limited=$(cgroup_of "$(running 700)")
limit_is "$limited" 1536 || fail "the limit of $limited is $(limit_of "$limited")"
before=$(main_pid)
in_there kill -KILL "$before"
limit_is "$limited" 1536 || fail "a daemon that is killed takes the limit back"
wait_until other_than "$before"
wait_until enforcement_is library_and_driver
in_there sh -c 'echo >/etc/gpurota/gpurota.toml'
in_there systemctl reload gpurotad.service
wait_until limit_is "$limited" none
as alice gpurota release --all >/dev/null
wait_until has_leases 0
echo "ok the driver limits the control groups of logins and jobs, over a kill of the daemon"

# The groups of pods as kubelet makes them: with both of its cgroup drivers and in each QoS class;
# below a cgroupRoot; and of a kubelet in a container, which is found by the caller's group.
node=/docker/$(printf 'a%.0s' {1..64}) container=$(printf 'b%.0s' {1..64})
pods=(/kubepods.slice/kubepods-pod1b_0.slice
  /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b_1.slice
  /kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1b_2.slice
  /kubepods/pod1b-3 /kubepods/burstable/pod1b-4 /kubepods/besteffort/pod1b-5
  /x.slice/x-kubepods.slice/x-kubepods-burstable.slice/x-kubepods-burstable-pod1b_6.slice
  /site/kube/kubepods/besteffort/pod1b-7
  "$node"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1b_8.slice)
in_there sh -c 'cat >/usr/local/bin/from-group; chmod 755 /usr/local/bin/from-group' <<'EOF'
#!/bin/sh
echo $$ >"/sys/fs/cgroup$1/cgroup.procs" && shift && exec "$@"
EOF
# from_group GROUP COMMAND…: runs the command as root, in the control group.
from_group() {
  in_there systemd-run --quiet --wait --pipe --collect \
    --setenv=GPUROTA_SIM_DIR=/var/gpurota-sim/machine --setenv=LD_LIBRARY_PATH="$sim" -- \
    /usr/local/bin/from-group "$@"
}
# pod_lease UID GROUP: takes 512 MiB for a pod, as a gpurota-dra in the control group does.
pod_lease() {
  from_group "$2" python3 -B - /run/gpurota/control.sock "$1" "$1" 0 512 \
    <"$tests/../e2e/pod_lease.py"
}
limits_are() {
  [ "$(in_there python3 -B - list /sys/fs/cgroup <"$tests/../e2e/driver_limits.py")" = "$1" ]
}
# limits_of_pods MIB…: the lines of `list` for the limits of the pods in their order.
limits_of_pods() {
  local i=0 mib
  for mib in "$@"; do
    if [ "$mib" != none ]; then echo "$mib ${pods[i]}"; fi
    i=$((i + 1))
  done | sort -k 2
}
lease_of_pod() {
  in_there gpurota status --json | python3 -c 'import json, sys
for lease in json.load(sys.stdin)["leases"]:
  if lease["allocation"] == sys.argv[1]: print(lease["lease_id"])' "$1"
}
none_is() { ! shows "\"enforced_by\": *\"$1\"" in_there gpurota status --json; }

in_there sh -c 'echo "enforcement = \"driver\"" >/etc/gpurota/gpurota.toml'
in_there systemctl reload gpurotad.service || fail "enforcement is refused"
in_there mkdir -p "/sys/fs/cgroup${pods[4]}/$container/kubepods/pod2c-1" \
  "/sys/fs/cgroup$node/system.slice"
for group in "${pods[@]}"; do in_there mkdir -p "/sys/fs/cgroup$group/$container"; done
answer=$(pod_lease 2c-1 "$node/system.slice" 2>&1) || true
[[ $answer == *"its pod has no control group"* ]] ||
  fail "a group that a pod has made counts as kubelet's: $answer"
has_leases 0 || fail "a lease without its limit stays"
for i in "${!pods[@]}"; do
  caller=$node/system.slice
  if [ "$i" = 0 ]; then caller=${pods[0]}/$container; fi
  pod_lease "1b-$i" "$caller" || fail "the pod in ${pods[i]} gets no lease"
  limit_is "${pods[i]}" 1024 || fail "the limit of ${pods[i]} is $(limit_of "${pods[i]}")"
  shows OUT_OF_MEMORY from_group "${pods[i]}/$container" "$hold" hold 1500 ||
    fail "the driver does not limit a program in ${pods[i]}"
done
none_is library || fail "the driver does not limit all pods"
limits_are "$(limits_of_pods 1024 1024 1024 1024 1024 1024 1024 1024 1024)" ||
  fail "a limit is set twice"
for i in 1 8; do in_there gpurota update "$(lease_of_pod "1b-$i")" --memory 600M >/dev/null; done
wait_until limits_are "$(limits_of_pods 1024 1112 1024 1024 1024 1024 1024 1024 1112)"
in_there gpurota release "$(lease_of_pod 1b-0)" "$(lease_of_pod 1b-6)" >/dev/null
left=$(limits_of_pods none 1112 1024 1024 1024 1024 none 1024 1112)
wait_until limits_are "$left"
before=$(main_pid)
in_there kill -KILL "$before"
limits_are "$left" || fail "a daemon that is killed changes the limits of pods"
wait_until other_than "$before"
wait_until has_leases 7
wait_until none_is library
limits_are "$left" || fail "the next daemon changes the limits of pods"
before=$(main_pid)
in_there gpurota release --all >/dev/null
in_there kill -KILL "$before"
wait_until other_than "$before"
wait_until has_leases 0
wait_until limits_are ""
in_there find "/sys/fs/cgroup${node%/*}" /sys/fs/cgroup/{kubepods,kubepods.slice,site,x.slice} \
  -depth -type d -exec rmdir {} +
in_there sh -c 'echo >/etc/gpurota/gpurota.toml'
in_there systemctl reload gpurotad.service
in_there systemctl reset-failed gpurotad.service # systemd counts the starts of one minute
echo "ok the driver limits the control groups of pods wherever kubelet has them"

# notifier COMMAND: makes the program of [notify].
notifier() {
  in_there sh -c 'printf "#!/bin/sh\n%s\n" "$1" >/usr/local/bin/notifier;
    chmod 755 /usr/local/bin/notifier' sh "$1"
}
in_there systemd-sysusers "$where"/lib/sysusers.d/gpurota.conf
in_there sh -c 'printf "%s\n" "$@" >/etc/gpurota/gpurota.toml' sh \
  '[notify]' 'command = ["/usr/local/bin/notifier"]' 'time_limit = "2s"'
in_there systemctl reload gpurotad.service || fail "the section [notify] is refused"
notifier 'exec >/tmp/notice; id -un; grep -E "NoNewPrivs|Seccomp:" /proc/self/status; cat'
shows '^command: sent in' in_there gpurota notify --test || fail "$(in_there gpurota notify --test)"
shows '^gpurota-notify$' in_there cat /tmp/notice ||
  fail "a notice is sent by $(in_there cat /tmp/notice)"
shows '"what":"test".*"user":"root"' in_there cat /tmp/notice ||
  fail "the program got $(in_there cat /tmp/notice)"
shows 'NoNewPrivs:.*0' in_there cat /tmp/notice ||
  fail "the program is in the daemon's sandbox: it can send no mail"
shows 'Seccomp:.*0' in_there cat /tmp/notice || fail "the program is in the daemon's sandbox"
notifier 'echo broken >&2; exit 3'
shows 'exit status 3: broken' in_there gpurota notify --test ||
  fail "$(in_there gpurota notify --test)"
notifier 'exec sleep 777'
shows 'killed when its time was over' in_there gpurota notify --test ||
  fail "$(in_there gpurota notify --test)"
if in_there pgrep -f '^sleep 777' >/dev/null; then fail "a program that hangs outlives its time"; fi
in_there sh -c 'echo >/etc/gpurota/gpurota.toml'
in_there systemctl reload gpurotad.service
echo "ok notices are sent by a unit, as a user of its own, which is ended when its time is over"

login alice gpurota job add web --workdir /home/alice --memory 1G "${machine[@]}" -- \
  sh -c "pwd; id -un; grep -E 'NoNewPrivs|Seccomp:' /proc/self/status; exec $hold hold 301"
login alice gpurota job add once --memory 1G "${machine[@]}" -- true
login alice gpurota job add stopped --memory 1G "${machine[@]}" -- "$hold" hold 302
wait_until logged web holding
wait_until job_is once finished
wait_until is_running 302
logged web '^/home/alice$' || fail "a job does not see its owner's home"
logged web '^alice$' || fail "a job is not its owner's"
logged web 'NoNewPrivs:.*0' || fail "a job is in the daemon's sandbox"
logged web 'Seccomp:.*0' || fail "a job is in the daemon's sandbox"
login alice gpurota job stop stopped
wait_until job_is stopped stopped
wait_until no_logins
web=$(running 301)
[ -n "$web" ] || fail "a job ended with the login of the one who added it"
[[ $(cgroup_of "$web") == /gpurota.slice/gpurota-jobs.slice/gpurota-job-* ]] ||
  fail "a job is in $(cgroup_of "$web")"
shows 'lease made' in_there journalctl \
  --no-pager --quiet -u gpurotad.service LEASE=L1 UID="$(in_there id -u alice)" ||
  fail "the journal's lines have no fields LEASE= and UID="
shows 'gpurota: a job of alice$' units_of job || fail "units of jobs are named $(units_of job)"
echo "ok a job outlives the login of the one who added it," \
  "although logind ends all that a login started"

login alice gpurota job add said --output journal --memory 1G "${machine[@]}" -- \
  sh -c "echo words of the job; exec $hold hold 303"
wait_until journal_has said 'words of the job'
login alice gpurota job remove --force said
echo "ok a job that writes to the journal: its owner reads it there"

login bob gpurota filler add fold --gpu-ids 1 --memory 50% \
  --idle-after 1s "${machine[@]}" -- "$hold" hold 311
wait_until is_running 311
# In a login, the programs of a lease stay in the login's control group, so the restarts of the
# daemon must not affect them.
login alice sh -c 'gpurota run --gpu-ids 0 --memory 1G -- gpu_program hold 304; sleep 1' \
  >/dev/null 2>&1 &
login alice systemd-run --user --quiet --collect --setenv=PATH="$where/bin:/usr/bin:/bin" \
  --setenv=GPUROTA_SIM_DIR=/var/gpurota-sim/machine --setenv=LD_LIBRARY_PATH="$sim" \
  sh -c 'sleep 1; exec gpurota run --gpu-ids 0 --memory 1G -- gpu_program hold 305'
wait_until is_running 304
wait_until is_running 305
run=$(running 304) by_manager=$(running 305) fold=$(running 311)
[[ $(cgroup_of "$run") == /user.slice/user-*.slice/session-*.scope/* ]] ||
  fail "a run is in $(cgroup_of "$run")"
all_live() {
  [ "$(running 301)/$(running 304)/$(running 305)/$(running 311)" = "$web/$run/$by_manager/$fold" \
    ] && [ "$(leases)" = 4 ]
}
wait_until all_live
ways=(restart stop kill)
if [ "$where" = /usr ]; then ways+=(upgrade); fi
# Asks for the status all the time, until the daemon has been restarted in all ways.
in_there sh -c 'asked=0; failed=0
  while [ ! -e /tmp/asked-enough ]; do
    gpurota status >/dev/null 2>>/tmp/refused || failed=$((failed + 1)); asked=$((asked + 1)); done
  echo "$failed of $asked failed"' >"$dir/asked" &
asking=$!
for how in "${ways[@]}"; do
  before=$(main_pid)
  case $how in
    restart) in_there systemctl restart gpurotad.service ;;
    stop) in_there systemctl stop gpurotad.service && in_there systemctl start gpurotad.service ;;
    kill) in_there kill -KILL "$before" ;;
    upgrade)
      in_there sh -c 'dpkg -i /var/packages/newer/*.deb </dev/null' >/dev/null 2>&1 ||
        fail "the upgrade fails"
      ;;
  esac
  wait_until other_than "$before"
  wait_until all_live
done
in_there touch /tmp/asked-enough
wait "$asking"
grep -q '^0 of' "$dir/asked" || fail "$(cat "$dir/asked"): $(in_there cat /tmp/refused)"
echo "ok ${ways[*]}: jobs, fillers and programs in logins go on;" \
  "of those who asked $(cat "$dir/asked")"

in_there mkdir -p /run/systemd/system/gpurotad.service.d
in_there sh -c \
  'printf "[Service]\nWatchdogSec=5\n" >/run/systemd/system/gpurotad.service.d/watchdog.conf'
in_there systemctl daemon-reload
in_there systemctl restart gpurotad.service
before=$(main_pid)
in_there kill -STOP "$before"
wait_until other_than "$before"
daemon_says 'Watchdog timeout' || fail "it was not the watchdog"
in_there rm /run/systemd/system/gpurotad.service.d/watchdog.conf
in_there systemctl daemon-reload
wait_until all_live
echo "ok a daemon that hangs is replaced by the watchdog, and nobody's program notices"

daemon_listens() {
  in_there journalctl --no-pager --quiet -o cat -u gpurotad.service | grep 'gpurotad serves' |
    tail -n 1 | grep -q "listens=$1"
}
socket=$(in_there systemctl show -P FragmentPath gpurotad.socket)
in_there systemctl stop gpurotad.socket
in_there mv "$socket" /tmp/gpurotad.socket
in_there systemctl daemon-reload
in_there systemctl restart gpurotad.service
wait_until daemon_listens itself
wait_until all_live
in_there mv /tmp/gpurotad.socket "$socket"
in_there systemctl daemon-reload
in_there systemctl restart gpurotad.service
wait_until daemon_listens systemd
wait_until all_live
echo "ok without the socket unit the daemon listens for itself, and a restart brings the unit in"

login alice gpurota run --gpu-ids 1 -- gpu_program hold 7000 >/dev/null 2>&1 &
wait_until is_running 7000
is_not_running 311 || fail "a filler stays beside somebody who has its GPU"
as alice gpurota release "$(as alice gpurota status --json | lease_on 1)"
wait_until is_not_running 7000
wait_until is_running 311
echo "ok a filler makes way for another user, whose lease ends with its program (CAP_KILL)," \
  "and comes back"

in_there loginctl terminate-user alice
wait_until is_not_running 304
wait_until is_not_running 305
wait_until has_leases 2
[ "$(running 301)" = "$web" ] || fail "a job ended with a login"
echo "ok a program of a login ends with it, and its lease too"

power_off
boot
wait_until is_running 301
wait_until is_running 311
job_is once finished || fail "a job that was done is $(state_of once) after a reboot"
job_is stopped stopped || fail "a job that was stopped is $(state_of stopped) after a reboot"
shows 'reboot$' as alice gpurota job show web ||
  fail "why the run before the reboot ended is not known"
echo "ok after a reboot the job that ran runs again, a filler too, and nothing else"

plugin_runs() {
  [ "$(in_there systemctl is-active gpurota-device-plugin.service)" = active ] &&
    in_there test -d /var/lib/gpurota-kubernetes
}
if [ "$where" = /usr ]; then
  ! in_there systemctl is-enabled --quiet gpurota-device-plugin.service ||
    fail "the plugin for Kubernetes is enabled, which nobody has asked for"
  in_there mkdir -p /var/lib/kubelet/device-plugins
  in_there systemctl --quiet enable --now gpurota-device-plugin.service
  wait_until plugin_runs
  before=$(in_there systemctl show -P MainPID gpurota-device-plugin.service)
  in_there sh -c 'dpkg -i /var/packages/newer/gpurota-kubernetes_*.deb </dev/null' >/dev/null \
    2>&1 || fail "the upgrade of gpurota-kubernetes fails"
  other_plugin() {
    plugin_runs && [ "$(in_there systemctl show -P MainPID gpurota-device-plugin.service)" != \
      "$before" ]
  }
  wait_until other_plugin
  in_there dpkg --remove gpurota-kubernetes >/dev/null ||
    fail "dpkg --remove gpurota-kubernetes fails"
  ! plugin_runs || fail "the plugin runs without its package"
  in_there test -d /var/lib/gpurota-kubernetes || fail "remove takes the plugin's state"
  in_there dpkg --purge gpurota-kubernetes >/dev/null ||
    fail "dpkg --purge gpurota-kubernetes fails"
  ! in_there test -e /var/lib/gpurota-kubernetes || fail "purge leaves the plugin's state"
  [ -z "$(in_there find /etc/systemd /var/lib/systemd -name '*device-plugin*')" ] ||
    fail "purge leaves $(in_there find /etc/systemd /var/lib/systemd -name '*device-plugin*')"
  [ "$(in_there ls -A /var/lib/kubelet/device-plugins)" = "" ] ||
    fail "the plugin leaves $(in_there ls -A /var/lib/kubelet/device-plugins)"
  echo "ok the plugin for Kubernetes is started by its administrator only, goes on over" \
    "an upgrade, and ends with its package"
fi

login bob gpurota filler remove fold
wait_until has_leases 1
wait_until no_units_of filler
# Removes gpurota as the manual says.
if [ "$where" = /usr ]; then
  in_there dpkg --purge gpurota-web gpurotad >/dev/null || fail "dpkg --purge fails"
  ! in_there test -e /var/lib/gpurota || fail "purge leaves the state"
else
  in_there systemctl --quiet disable --now gpurotad.socket gpurotad.service "${page_units[@]}"
  is_running 301 || fail "a job ended with the daemon"
  in_there systemctl stop gpurota-jobs.slice
fi
wait_until is_not_running 301
wait_until no_units_of job
[ "$where" = /usr ] || [ "$(in_there systemctl show -P Result gpurotad.service)" = success ] ||
  fail "the daemon does not stop well"
power_off
echo "ok nothing is left behind, and it stops"
