#!/usr/bin/env bats
# ./dev demo: its output, and the commands that it prints at its end.

load helpers

SOURCE=$BATS_TEST_DIRNAME/../..

setup() { make_folders; }
teardown() { rm -rf "$E2E_DIR"; }

@test "the demo does what it prints, and its last commands work as printed" {
  # The test already runs in a simulated machine, so demo.sh makes none.
  export GPUROTA_DEMO_GPU=simulated
  "$SOURCE/demo/demo.sh" "$E2E_PREFIX" "$PROGRAM" >out 2>&1 || { cat out && false; }
  grep -q 'Nobody disturbed anybody' out
  sed -n '/^Nobody disturbed anybody/,$ s/^    \(.*\)/\1/p' out >commands
  [ "$(wc -l <commands)" = 3 ]
  head -n 2 commands >first
  (cd / && bash -e) <first >said
  grep -q '^usage: gpurota run' said
  grep -q '^demo' said
  read -r dev command _ <<<"$(tail -n 1 commands)"
  "$dev" help | grep -q "^  $command "
}
