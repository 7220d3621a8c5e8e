// The functions that the driver exports, generated from src/abi/driver_functions.tsv: sorted by
// base name, then version. A function that is not simulated has an entry too: a stub that counts
// calls.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct gpurota_sim_function {
  const char* base;
  int version;
  int per_thread; /* 1: the variant for the per-thread default stream */
  void* address;
};

extern const struct gpurota_sim_function gpurota_sim_functions[];
extern const unsigned gpurota_sim_function_count;

#ifdef __cplusplus
}
#endif
