# For tests of the Python module; after `load helpers`.
# shellcheck shell=bash

start_python_case() {
  # Uses the installed module, or that of the source tree if the stage of an older build has none.
  export PYTHONPATH=$E2E_PREFIX/lib/python3/dist-packages:$BATS_TEST_DIRNAME/../../python \
    PYTHONDONTWRITEBYTECODE=1
  export PROGRAM
  make_folders
  export JUPYTER_DATA_DIR=$E2E_DIR/jupyter
  start_daemon
}

# python FILE: runs the Python program on standard input in the background, with its output in FILE.
python() {
  cat >"$E2E_DIR/$1.py"
  in_background "$1" python3 -u "$E2E_DIR/$1.py"
}
