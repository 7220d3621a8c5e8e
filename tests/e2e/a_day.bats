#!/usr/bin/env bats
# A day in a lab: docs/tutorial.md, run as it is written, with its users and their mistakes.
# tutorial.py describes how the document is read. GPUROTA_REWRITE_TUTORIAL=1 writes the actual
# output into the document.

load helpers

# Runs in the accounts' mount namespace, where /etc/passwd has alice and bob.
as_daemon() { exec nsenter --target "$ACCOUNTS" --mount "$@"; }

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  if ! unshare --mount true; then skip "needs a mount namespace of its own"; fi
  if ! gpurota-sim show | grep -q '^machine demo,'; then skip "shows the simulated machine demo"; fi
  umask 022
  make_folders
  mkdir home etc etc/gpurota
  mv gpurota.toml etc/gpurota
  chmod 755 . run
  # All users may use the simulated machine.
  chmod -R a+rwX "$GPUROTA_SIM_DIR"
  make_program
  make_accounts
  DAEMON=("${DAEMON[@]/%"$E2E_DIR/gpurota.toml"/"$E2E_DIR/etc/gpurota/gpurota.toml"}")
  start_daemon
}
teardown() { end_test; }

# Sets the variables that a program needs on a simulated machine, because a job and a filler begin
# with a clean environment.
make_program() {
  cp "$PROGRAM" gpu_program
  cat >program <<END
#!/bin/bash
export LD_LIBRARY_PATH='$LD_LIBRARY_PATH' GPUROTA_SIM_DIR='$GPUROTA_SIM_DIR' E2E_DIR='$E2E_DIR'
exec -a "\$0" '$E2E_DIR/gpu_program' "\$@"
END
  chmod 755 program gpu_program
}

make_accounts() {
  local name uid=54001
  # The test's accounts come first in the files, before an account alice of the machine.
  echo 'students:x:54000:' | cat - /etc/group >group
  : >passwd
  mkdir home/admin
  for name in alice bob; do
    echo "$name:x:$uid:54000::$E2E_DIR/home/$name:/bin/bash" >>passwd
    mkdir -m 700 "home/$name"
    cp program "home/$name/train"
    cp program "home/$name/serve"
    chown -R "$uid:54000" "home/$name"
    uid=$((uid + 1))
  done
  cat /etc/passwd >>passwd
  # shellcheck disable=SC2016 # for the inner shell
  in_background accounts unshare --mount sh \
    -c 'mount --bind passwd /etc/passwd && mount --bind group /etc/group && echo ready &&
    exec sleep infinity'
  ACCOUNTS=$BACKGROUND_PID
  wait_until says accounts ready
}

@test "a day in a lab is as the tutorial tells it" {
  local tutorial=$BATS_TEST_DIRNAME/../../docs/tutorial.md
  nsenter --target "$ACCOUNTS" --mount --wd="$E2E_DIR" python3 \
    -B "$BATS_TEST_DIRNAME/tutorial.py" "$(realpath "$tutorial")" "$E2E_DIR"
}
