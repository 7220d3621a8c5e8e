// A probe that is linked to libcuda.so.1: the dynamic linker finds the functions.
#include "probe.h"

#define PROBE_DECLARE(field, symbol, base, result, parameters) extern "C" result symbol parameters;
PROBE_FUNCTIONS(PROBE_DECLARE)

Functions cu;

void find_functions() {
#define PROBE_BIND(field, symbol, base, result, parameters) cu.field = &symbol;
  PROBE_FUNCTIONS(PROBE_BIND)
}
