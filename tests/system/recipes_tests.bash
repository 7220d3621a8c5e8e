# The tests of recipes.sh, which machine.sh sources when the machine has booted.
# shellcheck shell=bash disable=SC2154 # machine.sh sets `where`, `sim`, `root` and `tests`

# recipe NAME: the indented lines that follow this name in the manual.
recipe() {
  awk -v name="<!-- recipe: $1 -->" '$0 == name {found = 1; next}
    found && /^    / {print substr($0, 5); any = 1; next} any {exit}' \
    "$tests/../../docs/operate/recipes.md" | grep . || fail "the manual has no recipe $1"
}
in_work() { login "$1" sh -c "cd /srv/work && { $2
}"; }
# was_held USER: the program has run as this user, under the limit of its lease.
was_held() { grep -qs 'total=1073741824' "$root/srv/out/$1"; }
forget() { rm -f "$root"/srv/out/*; }
stays() { in_there touch /srv/stay; }
ends() { in_there rm -f /srv/stay; }
# holds USER NAME: the recipe, run in a login of alice's, gives the program of USER a lease, and the
# lease ends with the program.
holds() {
  forget
  in_work alice "$(recipe "$2")"
  wait_until was_held "$1"
  wait_until has_leases 0
  echo "ok $2"
}

mkdir -p "$root/srv/work" "$root/srv/out" "$root/srv/modules"
chmod 1777 "$root/srv/work" "$root/srv/out"
cat >"$root/srv/work/train" <<END
#!/bin/sh
export GPUROTA_SIM_DIR=/var/gpurota-sim/machine LD_LIBRARY_PATH=$sim
$where/bin/gpu_program info >"/srv/out/\$(id -un)" 2>&1
while [ -e /srv/stay ]; do sleep 0.1; done
END
chmod 755 "$root/srv/work/train"
for user in alice bob; do ln -s /srv/work/train "$root/home/$user/train"; done
in_there sh -c 'groupadd students; usermod -aG students alice;
  echo "alice ALL=(bob) NOPASSWD: ALL" >/etc/sudoers.d/test; ip link set lo up 2>/dev/null || true'

for name in tmux screen; do
  forget
  stays
  in_work alice "$(recipe $name); \
    timeout 60 sh -c 'until [ -s /srv/out/alice ]; do sleep 0.1; done'; sleep 0.2"
  was_held alice || fail "$name: the program was told $(cat "$root/srv/out/alice")"
  wait_until has_leases 0 # the login has ended, with everything that it started
  ends
  echo "ok $name"
done

forget
stays
in_there loginctl enable-linger alice
in_work alice "$(recipe tmux-outlives-login)"
wait_until was_held alice
sleep 2
has_leases 1 || fail "the session ended with the login"
ends
wait_until has_leases 0
echo "ok tmux-outlives-login"

forget
recipe cron | in_there crontab -u alice -
end=$((SECONDS + 90))
until was_held alice; do
  ((SECONDS < end)) || fail "cron has not run it: $(in_there sh -c 'cat /home/alice/train.log')"
  sleep 0.5
done
in_there crontab -u alice -r
wait_until has_leases 0
echo "ok cron"
holds alice at
holds bob sudo
forget
in_there sh -c "$(recipe su)"
was_held bob || fail "su: the program was told $(cat "$root/srv/out/bob")"
echo "ok su"

in_there setpriv --reuid=alice --regid=alice --clear-groups -- env HOME=/home/alice sh \
  -c 'mkdir -p -m 700 ~/.ssh && cd ~/.ssh &&
  ssh-keygen -q -t ed25519 -N "" -f key && cp key.pub authorized_keys &&
  { printf "%s\n" "Host gpu1" "HostName 127.0.0.1" "IdentityFile ~/.ssh/key" &&
    printf "%s\n" "StrictHostKeyChecking no" "LogLevel ERROR"; } >config'
in_there systemctl is-active ssh.service >/dev/null || in_there systemctl start ssh.service
holds alice ssh
forget
cp "$root/etc/ssh/sshd_config" "$root/srv/sshd_config"
recipe force-command >>"$root/etc/ssh/sshd_config"
in_there systemctl reload ssh.service
in_work alice 'ssh gpu1 ./train'
was_held alice || fail "ForceCommand: the program was told $(cat "$root/srv/out/alice")"
forget
in_work alice 'echo ./train | ssh gpu1'
was_held alice || fail "ForceCommand, a login: the program was told $(cat "$root/srv/out/alice")"
in_there sh -c 'cp /srv/sshd_config /etc/ssh/sshd_config; systemctl reload ssh.service'
echo "ok force-command"

recipe limits >"$root/etc/security/limits.d/gpurota.conf"
if in_there sh -c 'ulimit -l unlimited' 2>/dev/null; then
  [ "$(in_there su - alice -c 'ulimit -l')" = unlimited ] ||
    fail "locked memory of a login is $(in_there su - alice -c 'ulimit -l')"
  echo "ok limits"
else
  echo "skipped limits: not even root may raise them here (CAP_SYS_RESOURCE)"
fi

printf '%s\n' '#%Module1.0' "$(recipe module)" >"$root/srv/modules/added"
printf '%s\n' '#%Module1.0' 'setenv LD_PRELOAD /usr/lib/x86_64-linux-gnu/libm.so.6' \
  >"$root/srv/modules/replaced"
with_module() {
  forget
  in_work alice "gpurota run --memory 1G -- \
    bash -lc 'module use /srv/modules; module load $1; ./train'"
}
with_module replaced
[ -s "$root/srv/out/alice" ] || fail "a module that sets LD_PRELOAD keeps the program from running"
! was_held alice ||
  fail "a module that sets LD_PRELOAD does not remove the library: the manual is wrong"
with_module added
was_held alice || fail "module: the program was told $(cat "$root/srv/out/alice")"
echo "ok module"

in_work alice 'python3 -m venv --without-pip venv'
holds alice venv

# An environment as conda makes and activates it, with an older C++ library. A script of a package
# puts the library into LD_LIBRARY_PATH; the interpreter of the environment also finds the library
# without that script.
environment=$root/opt/conda/envs/train
mkdir -p "$environment/bin" "$environment/lib" "$environment/etc/conda/activate.d" \
  "$root/opt/conda/etc/profile.d"
cat >"$root/opt/conda/etc/profile.d/conda.sh" <<'END'
conda() {
  [ "$1" = activate ] || return 1
  export CONDA_PREFIX=/opt/conda/envs/$2 CONDA_DEFAULT_ENV=$2 CONDA_SHLVL=1
  PATH=$CONDA_PREFIX/bin:$PATH
  for script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do . "$script"; done
}
END
echo 'export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH' \
  >"$environment/etc/conda/activate.d/libraries.sh"
cp "$root/usr/bin/python3" "$environment/bin/python"
in_there patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" /opt/conda/envs/train/bin/python
in_there sh -c 'echo "int nothing;" >/tmp/older.c;
  echo "GLIBCXX_3.4.21 { global: nothing; };" >/tmp/older.map'
in_there gcc -shared -fPIC -Wl,-soname,libstdc++.so.6 -Wl,--version-script=/tmp/older.map \
  -o /opt/conda/envs/train/lib/libstdc++.so.6 /tmp/older.c
cat >"$root/srv/work/train.py" <<'END'
import ctypes, getpass
try:
    ctypes.CDLL("libstdc++.so.6", ctypes.RTLD_GLOBAL)
except OSError:
    pass  # whichever it is
cuda, device, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_size_t()
said = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)]
with open("/srv/out/" + getpass.getuser(), "w") as file:
    print("said=%s total=%d" % (said, total.value), file=file)
print("total=%d" % total.value)
END
holds alice conda
in_work alice '/opt/conda/envs/train/bin/python -c "import ctypes; ctypes.CDLL(
  \"libstdc++.so.6\").nothing"' ||
  fail "the interpreter of the environment does not find the older C++ library"
holds alice conda-path
echo "export LD_PRELOAD=/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)/libm.so.6" \
  >"$environment/etc/conda/activate.d/replaced.sh"
activated_within() {
  in_work alice "gpurota run --memory 1G -- \
    bash -c '. /opt/conda/etc/profile.d/conda.sh; conda activate train; exec ./train'"
}
forget
activated_within
[ -s "$root/srv/out/alice" ] ||
  fail "an activation that sets LD_PRELOAD keeps the program from running"
! was_held alice ||
  fail "an activation that sets LD_PRELOAD does not remove the library: the manual is wrong"
holds alice conda

# JupyterHub starts servers itself, and as units of their own.
recipe automatic >"$root/etc/gpurota/gpurota.toml"
in_there systemctl reload gpurotad.service || fail "the settings of automatic leases are refused"
{ recipe jupyterhub && cat "$tests/jupyterhub_config.py"; } >"$root/srv/jupyterhub_config.py"
cp "$tests/jupyterhub_client.py" "$root/srv/"
in_there systemctl stop jupyterhub.service 2>/dev/null || true
for by in hub unit; do
  forget
  ends
  in_there systemd-run --quiet --collect --unit=hub --setenv=STARTED_BY=$by \
    --setenv=GPUROTA_SIM_DIR=/var/gpurota-sim/machine --setenv=LD_LIBRARY_PATH="$sim" \
    --setenv=PATH=/usr/bin:/bin --setenv=NODE_PATH=/usr/share/nodejs \
    --working-directory=/srv -- jupyterhub -f /srv/jupyterhub_config.py
  in_there /usr/bin/python3 /srv/jupyterhub_client.py alice /srv/work/train.py /srv/stay \
    >"$dir/client" 2>&1 &
  client=$!
  for _ in {1..900}; do
    if [ -s "$root/srv/out/alice" ] || ! kill -0 "$client" 2>/dev/null; then break; fi
    sleep 0.1
  done
  was_held alice ||
    fail "a kernel of JupyterHub ($by) was told $(cat "$root/srv/out/alice"):" \
      "$(tail -n 5 "$dir/client")" \
      "$(in_there journalctl --no-pager -n 20 -u hub -u jupyter-test)"
  has_leases 1 || fail "the kernel has no lease, or several: $(in_there gpurota status)"
  stays
  wait "$client" || fail "the server of JupyterHub ($by) does not end: $(tail -n 5 "$dir/client")"
  wait_until has_leases 0
  in_there systemctl stop hub.service
  echo "ok jupyterhub, servers started by: $by"
done
ends
power_off
