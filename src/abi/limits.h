/* Figures that both ends of the tenant socket must agree on. C-compatible, no dependencies. */
#pragma once

/* GPUs one lease can hold. 16 is the largest HGX/DGX board; MIG instances count as GPUs. */
#define GPUROTA_SLOTS 16
/* Raw bytes of a GPU's UUID, as cuDeviceGetUuid_v2 gives them and NVML prints them in hex. */
#define GPUROTA_UUID_BYTES 16
/* Hex digits of a lease's token, without a terminating NUL. */
#define GPUROTA_TOKEN_CHARS 32
/* A list of GPUs for CUDA_VISIBLE_DEVICES with its NUL: 16 of "MIG-" and a UUID, with commas. */
#define GPUROTA_VISIBLE_BYTES 704
/* A sentence on why a program has no lease. */
#define GPUROTA_WHY_BYTES 240
