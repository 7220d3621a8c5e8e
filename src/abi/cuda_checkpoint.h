/* The driver's calls that park another process: lock it, take all that it has off the GPUs, put
 * that back, unlock it (docs/design/park.md). The types are those of cuda.h of CUDA 13.0.
 */
#pragma once

#include "abi/cuda_abi.h"

#include <stddef.h>
#include <stdint.h>

typedef enum CUprocessState_enum {
  CU_PROCESS_STATE_RUNNING = 0,
  CU_PROCESS_STATE_LOCKED = 1,
  CU_PROCESS_STATE_CHECKPOINTED = 2,
  CU_PROCESS_STATE_FAILED = 3
} CUprocessState;

typedef struct CUcheckpointLockArgs_st {
  unsigned int timeoutMs; /* 0: none */
  unsigned int reserved0;
  uint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct CUcheckpointCheckpointArgs_st {
  uint64_t reserved[8];
} CUcheckpointCheckpointArgs;

typedef struct CUcheckpointRestoreArgs_st {
  void* gpuPairs; /* which GPU stands in for which */
  unsigned int gpuPairsCount;
  char reserved[52 - sizeof(void*)];
  uint64_t reserved1;
} CUcheckpointRestoreArgs;

typedef struct CUcheckpointUnlockArgs_st {
  uint64_t reserved[8];
} CUcheckpointUnlockArgs;

#ifdef __cplusplus
static_assert(sizeof(CUcheckpointLockArgs) == 64 && sizeof(CUcheckpointRestoreArgs) == 64);
#endif
