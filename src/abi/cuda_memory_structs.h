/* Structs of the rarer memory families: first-generation array descriptors, parts of sparse arrays,
 * green contexts. Part of cuda_abi.h. */
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

typedef struct CUdevResourceDesc_st* CUdevResourceDesc;
