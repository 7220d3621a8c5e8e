#!/bin/bash
# run_foreign.sh NATIVE_BUILD FOREIGN_BUILD ROOT QEMU [GTEST_ARGUMENT…]: runs the tests of
# libgpurota.so with the library, the simulated driver and the programs of another architecture,
# emulated by QEMU with the C library in ROOT. The tests themselves, their daemon and gpurota-sim
# are native.
set -euo pipefail
native=$(realpath "$1") foreign=$(realpath "$2") root=$3 qemu=$4
shift 4
folder=$foreign/foreign
programs=$foreign/tests/interposer
rm -rf "$folder" && mkdir -p "$folder"
cp "$foreign/lib/libgpurota.so" "$folder"

# The tests find each program by its name in this folder. Two variables are set for the emulated
# program only.
cat > "$folder/gpurota-sim" <<END
#!/bin/sh
exec $qemu -L $root $foreign/sim/gpurota-sim "\$@"
END
chmod +x "$folder/gpurota-sim"
for program in probe_linked probe_dynamic probe_families traps_probe nvml_probe newer_program; do
  libraries=$foreign/sim/lib
  if [ "$program" = newer_program ]; then libraries=$programs/newer; fi
  cat > "$folder/$program" <<END
#!/bin/sh
export PROBE_SELF=\$0
preload=\$LD_PRELOAD
unset LD_PRELOAD
exec $qemu -L $root -E LD_LIBRARY_PATH=$libraries -E "LD_PRELOAD=\$preload" $programs/$program "\$@"
END
  chmod +x "$folder/$program"
done

failed=0
echo "libgpurota.so from outside"
python3 -B "$(dirname "$0")/library_test.py" "$folder/libgpurota.so" \
  "$(dirname "$0")/../../src/abi/driver_functions.tsv" \
  "$(dirname "$0")/../../src/interposer/account/nvml.h" || failed=1
for level in O0 O2; do
  for lease in "" L1; do
    echo "dlsym for others, $level, lease '$lease': $("$qemu" -L "$root" -E "GPUROTA_LEASE=$lease" \
      -E "LD_PRELOAD=$folder/libgpurota.so $programs/libdlsym_wrapper_$level.so" \
      "$programs/dlsym_probe_$level" 2>&1 || echo FAILED)"
  done
done | tee "$folder/dlsym.out"
if [ "$(grep -c ': ok$' "$folder/dlsym.out")" != 4 ]; then failed=1; fi

# Skips tests whose subject the emulator changes. The emulator wipes no memory at a fork, makes
# vfork a fork, has no robust mutexes that survive a kill, and does not take the lock that shows the
# simulated machine which processes are alive.
skipped='-TrapTest.KilledAtAnyInstruction*:*vfork_then_exec*:*raw_clone*'
skipped+=':NvmlTest.ListsTheProcesses*:NvmlTest.TellsTheTruth*:NvmlTest.WithoutALease*'
GPUROTA_FOREIGN=$folder "$native/tests/interposer/interposer_program_test" --gtest_brief=1 \
  "--gtest_filter=$skipped" "$@" < /dev/null 2> >(grep -v 'cannot be preloaded' >&2) || failed=1
exit "$failed"
