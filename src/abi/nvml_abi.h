/* The binary interface of NVML as far as gpurota and its simulated driver need it, under the usual
 * names. Stands in for NVIDIA's nvml.h, which no part of the build needs; never include both.
 *
 * Declares no functions: they are looked up at run time. C-compatible, 64-bit. Where a struct has
 * versions, the one with the suffix belongs to the function with the same suffix.
 */
#pragma once

#include <stdint.h>

typedef struct nvmlDevice_st* nvmlDevice_t;

typedef enum nvmlReturn_enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_IRQ_ISSUE = 11,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

#define NVML_DEVICE_UUID_BUFFER_SIZE 96
#define NVML_DEVICE_NAME_BUFFER_SIZE 96
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_INIT_FLAG_NO_GPUS 1u
#define NVML_INIT_FLAG_NO_ATTACH 2u
/* The value of usedGpuMemory where the driver cannot tell (WDDM, some MIG queries). */
#define NVML_VALUE_NOT_AVAILABLE_U64 UINT64_MAX
/* gpuInstanceId and computeInstanceId of a process that is not on a MIG device. */
#define NVML_NO_INSTANCE 0xffffffffu

typedef struct nvmlMemory_st {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used; /* includes what the driver reserves for itself */
} nvmlMemory_t;

typedef struct nvmlMemory_v2_st {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used; /* without `reserved` */
} nvmlMemory_v2_t;
#define NVML_MEMORY_V2 (40u | 2u << 24) /* its size and its version */

/* Of nvmlDeviceSetMemoryLimits_v1 and nvmlDeviceGetMemoryLimits_v1, of driver 615
 * and later. No limit: softLimit is 0 and hardLimit NVML_DEVICE_MEMORY_LIMIT_MAX. */
#define NVML_DEVICE_MEMORY_LIMIT_MAX UINT64_MAX
typedef struct nvmlSetMemoryLimits_v1_st {
  const char* nameSpace; /* the directory of a control group */
  unsigned long long softLimit;
  unsigned long long hardLimit;
} nvmlSetMemoryLimits_v1_t;

typedef struct nvmlGetMemoryLimits_v1_st {
  const char* nameSpace;
  unsigned long long softLimit;
  unsigned long long hardLimit;
  unsigned long long currentUsed;
} nvmlGetMemoryLimits_v1_t;

typedef struct nvmlBAR1Memory_st {
  unsigned long long bar1Total;
  unsigned long long bar1Free;
  unsigned long long bar1Used;
} nvmlBAR1Memory_t;

typedef struct nvmlProcessInfo_v1_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

/* Of the functions ending in _v2 and in _v3. */
typedef struct nvmlProcessInfo_v2_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t;

/* Of nvmlDeviceGetRunningProcessDetailList. */
typedef struct nvmlProcessDetail_v1_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct nvmlProcessDetailList_v1_st {
  unsigned int version;
  unsigned int mode; /* 0: compute, 1: graphics, 2: MPS */
  unsigned int numProcArrayEntries;
  nvmlProcessDetail_v1_t* procArray;
} nvmlProcessDetailList_v1_t;
#define NVML_PROCESS_DETAIL_LIST_V1 (24u | 1u << 24)

typedef struct nvmlUtilization_st {
  unsigned int gpu;
  unsigned int memory;
} nvmlUtilization_t;

typedef struct nvmlProcessUtilizationSample_st {
  unsigned int pid;
  unsigned long long timeStamp; /* microseconds since 1970 */
  unsigned int smUtil;
  unsigned int memUtil;
  unsigned int encUtil;
  unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

/* Of nvmlDeviceGetPciInfo_v3. */
typedef struct nvmlPciInfo_st {
  char busIdLegacy[16]; /* "0000:3b:00.0" */
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32]; /* "00000000:3B:00.0" */
} nvmlPciInfo_t;

/* Of nvmlDeviceGetPciInfo and nvmlDeviceGetPciInfo_v2. */
typedef struct nvmlPciInfo_v2_st {
  char busId[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  unsigned int reserved[4];
} nvmlPciInfo_v2_t;

typedef struct nvmlDeviceAttributes_st {
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
  unsigned int gpuInstanceSliceCount;
  unsigned int computeInstanceSliceCount;
  unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef enum nvmlEnableState_enum {
  NVML_FEATURE_DISABLED = 0,
  NVML_FEATURE_ENABLED = 1
} nvmlEnableState_t;

typedef enum nvmlComputeMode_enum {
  NVML_COMPUTEMODE_DEFAULT = 0,
  NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
  NVML_COMPUTEMODE_PROHIBITED = 2,
  NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
} nvmlComputeMode_t;

enum { NVML_DEVICE_MIG_DISABLE = 0, NVML_DEVICE_MIG_ENABLE = 1 };
enum { NVML_TEMPERATURE_GPU = 0 };
/* For nvmlDeviceGetTemperatureThreshold: the temperature from which the clocks are lowered. */
enum { NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1 };
/* For nvmlDeviceGetTotalEccErrors: uncorrectable errors since the driver was loaded. */
enum { NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum { NVML_VOLATILE_ECC = 0 };
enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };
enum {
  NVML_DEVICE_ARCH_PASCAL = 4,
  NVML_DEVICE_ARCH_VOLTA = 5,
  NVML_DEVICE_ARCH_TURING = 6,
  NVML_DEVICE_ARCH_AMPERE = 7,
  NVML_DEVICE_ARCH_ADA = 8,
  NVML_DEVICE_ARCH_HOPPER = 9,
  NVML_DEVICE_ARCH_BLACKWELL = 10
};

/* Bits of nvmlDeviceGetCurrentClocksEventReasons, before driver 535 ...ClocksThrottleReasons. */
#define NVML_CLOCKS_GPU_IDLE 0x1ULL
#define NVML_CLOCKS_APPLICATIONS_SETTING 0x2ULL
#define NVML_CLOCKS_SW_POWER_CAP 0x4ULL
#define NVML_CLOCKS_HW_SLOWDOWN 0x8ULL
#define NVML_CLOCKS_SYNC_BOOST 0x10ULL
#define NVML_CLOCKS_SW_THERMAL_SLOWDOWN 0x20ULL
#define NVML_CLOCKS_HW_THERMAL_SLOWDOWN 0x40ULL
#define NVML_CLOCKS_HW_POWER_BRAKE 0x80ULL
#define NVML_CLOCKS_DISPLAY_SETTING 0x100ULL

typedef struct nvmlEventSet_st* nvmlEventSet_t;
#define NVML_EVENT_XID_CRITICAL_ERROR 0x8ULL
/* Of nvmlEventSetWait and nvmlEventSetWait_v2. */
typedef struct nvmlEventData_st {
  nvmlDevice_t device;
  unsigned long long eventType;
  unsigned long long eventData; /* the number of the Xid */
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
} nvmlEventData_t;

typedef enum nvmlGpuLevel_enum {
  NVML_TOPOLOGY_INTERNAL = 0,
  NVML_TOPOLOGY_SINGLE = 10,
  NVML_TOPOLOGY_MULTIPLE = 20,
  NVML_TOPOLOGY_HOSTBRIDGE = 30,
  NVML_TOPOLOGY_NODE = 40,
  NVML_TOPOLOGY_SYSTEM = 50
} nvmlGpuTopologyLevel_t;

/* For nvmlDeviceGetP2PStatus: the kind of access between two GPUs, and its status. */
enum {
  NVML_P2P_CAPS_INDEX_READ = 0,
  NVML_P2P_CAPS_INDEX_WRITE = 1,
  NVML_P2P_CAPS_INDEX_NVLINK = 2
};
enum { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5 };

#ifdef __cplusplus
static_assert(sizeof(nvmlMemory_v2_t) == 40);
static_assert(sizeof(nvmlSetMemoryLimits_v1_t) == 24);
static_assert(sizeof(nvmlGetMemoryLimits_v1_t) == 32);
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16);
static_assert(sizeof(nvmlProcessInfo_v2_t) == 24);
static_assert(sizeof(nvmlProcessDetail_v1_t) == 32);
static_assert(sizeof(nvmlProcessDetailList_v1_t) == 24);
static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32);
static_assert(sizeof(nvmlPciInfo_t) == 68);
static_assert(sizeof(nvmlEventData_t) == 32);
static_assert(sizeof(nvmlPciInfo_v2_t) == 52);
static_assert(sizeof(nvmlDeviceAttributes_t) == 40);
#endif
