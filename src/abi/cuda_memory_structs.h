/* Structs of the rarer memory families: first-generation array descriptors, parts of sparse arrays,
 * green contexts, batches of copies and of values. Part of cuda_abi.h. */
#pragma once

typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st {
  unsigned int Width;
  unsigned int Height;
  CUarray_format Format;
  unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;
GPUROTA_CUDA_SIZE(CUDA_ARRAY_DESCRIPTOR_v1, 16);

typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st {
  unsigned int Width;
  unsigned int Height;
  unsigned int Depth;
  CUarray_format Format;
  unsigned int NumChannels;
  unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;
GPUROTA_CUDA_SIZE(CUDA_ARRAY3D_DESCRIPTOR_v1, 24);

enum { CU_MEM_OPERATION_TYPE_MAP = 1, CU_MEM_OPERATION_TYPE_UNMAP = 2 };

typedef struct CUarrayMapInfo_st {
  int resourceType;
  union {
    CUmipmappedArray mipmap;
    CUarray array;
  } resource;
  int subresourceType;
  union {
    struct {
      unsigned int level;
      unsigned int layer;
      unsigned int offsetX;
      unsigned int offsetY;
      unsigned int offsetZ;
      unsigned int extentWidth;
      unsigned int extentHeight;
      unsigned int extentDepth;
    } sparseLevel;
    struct {
      unsigned int layer;
      unsigned long long offset;
      unsigned long long size;
    } miptail;
  } subresource;
  int memOperationType;
  int memHandleType;
  union {
    CUmemGenericAllocationHandle memHandle;
  } memHandle;
  unsigned long long offset;
  unsigned int deviceBitMask;
  unsigned int flags;
  unsigned int reserved[2];
} CUarrayMapInfo;
GPUROTA_CUDA_SIZE(CUarrayMapInfo, 96);

/* Values written and waited for in stream order, several at once. */
enum {
  CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
  CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
  CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
  CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
  CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
  CU_STREAM_MEM_OP_BARRIER = 6
};

typedef union CUstreamBatchMemOpParams_union {
  int operation;
  struct {
    int operation;
    CUdeviceptr address;
    cuuint64_t value64; /* a 32-bit value is its low half */
    unsigned int flags;
    CUdeviceptr alias;
  } value; /* waitValue and writeValue in NVIDIA's header */
  cuuint64_t pad[6];
} CUstreamBatchMemOpParams;
GPUROTA_CUDA_SIZE(CUstreamBatchMemOpParams, 48);

/* Three-dimensional copies, several at once. */
enum { CU_MEMCPY_OPERAND_TYPE_POINTER = 1, CU_MEMCPY_OPERAND_TYPE_ARRAY = 2 };

typedef struct CUmemcpy3DOperand_st {
  int type;
  union {
    struct {
      CUdeviceptr ptr;
      size_t rowLength; /* in elements */
      size_t layerHeight;
      CUmemLocation locHint;
    } ptr;
    struct {
      CUarray array;
      size_t x; /* in elements */
      size_t y;
      size_t z;
    } array;
  } op;
} CUmemcpy3DOperand;

typedef struct CUDA_MEMCPY3D_BATCH_OP_st {
  CUmemcpy3DOperand src;
  CUmemcpy3DOperand dst;
  struct {
    size_t width; /* in elements */
    size_t height;
    size_t depth;
  } extent;
  int srcAccessOrder;
  unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;
GPUROTA_CUDA_SIZE(CUDA_MEMCPY3D_BATCH_OP, 112);

enum { CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1, CU_GRAPH_USER_OBJECT_MOVE = 1 };

typedef struct CUdevResourceDesc_st* CUdevResourceDesc;
enum { CU_DEV_RESOURCE_TYPE_SM = 1, CU_GREEN_CTX_DEFAULT_STREAM = 1 };

typedef struct CUdevResource_st {
  int type;
  unsigned char padding[92];
  union {
    struct {
      unsigned int smCount;
      unsigned int minSmPartitionSize;
      unsigned int smCoscheduledAlignment;
    } sm;
    unsigned char oversize[48];
  } of; /* anonymous in NVIDIA's header */
} CUdevResource;
GPUROTA_CUDA_SIZE(CUdevResource, 144);
