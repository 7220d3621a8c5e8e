// The functions of swap/ for the folders in lower layers, which must not include swap/ and call
// these functions through this table. swap/ fills the table in.
//
// An entry is called only where swapping() is true, unless its comment says otherwise: any other
// process pays only for that check. The table is filled in at link time, because another library's
// constructor may call the hooks before our constructors have run. The declaration of each entry's
// function in swap/ says what the function does and returns; register.cpp has both names.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/wire.h"
#include "interposer/account/answer.h"
#include "interposer/account/state.h"
#include "interposer/os/socket.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

struct AddressRange;
struct Place;
struct VirtualFound;

struct SwapTable {
  // The connection. `begin` makes this process a swap tenant, and is called with Link::mutex held;
  // the helper calls the other three.
  bool (*begin)(State& s);
  void (*connected)(State& s, int fd, uint64_t inode);
  void (*lost)(State& s);
  bool (*take_order)(State& s, const void* packet, long size, Descriptors* fds);
  // Wakes the worker.
  void (*poke)(State& s);

  // Memory that does not move, and contexts.
  Answer (*grow)(int slot, gpurota_swap_grow_kind kind, uint64_t bytes, uint64_t* granted);
  void (*shrink)(int slot, uint64_t resident, uint64_t out, uint64_t wired, uint64_t hosted);

  // Contexts. The first three are called with GatePart::contexts_mutex held. `free_context` is
  // called in every lease.
  void (*unpark)(State& s);
  void (*forget_events)(State& s);
  void (*forget_context)(CUcontext context);
  void (*free_context)(State& s, uint32_t serial);
  void (*context_returned)(int slot, uint32_t left);

  // Memory that moves, from cuMemAlloc and similar functions.
  CUresult (*allocate)(const Place& place, uint64_t size, CUdeviceptr* out);
  CUresult (*allocate_pitch)(const Place& place, uint64_t width, uint64_t height, unsigned element,
                             CUdeviceptr* out, size_t* pitch);
  CUresult (*allocate_async)(const Place& place, uint64_t size, CUstream stream, bool per_thread,
                             uint16_t pool, CUdeviceptr* out);
  bool (*free)(State& s, uint64_t address, CUresult* result);
  bool (*free_async)(State& s, uint64_t address, CUstream stream, bool per_thread,
                     CUresult* result);
  bool (*end_freed_if_idle)(State& s);
  bool (*moves)(State& s, uint64_t address);
  // With KnownStreams::mutex held.
  void (*stream_gone)(State& s, uint64_t key);

  // Memory that moves, and that the program maps itself. Only for handles and mappings that are
  // known to be of such memory.
  bool (*virtual_create)(const CUmemAllocationProp& prop, int slot, uint64_t size,
                         unsigned long long flags, CUmemGenericAllocationHandle* out,
                         CUresult* result);
  CUresult (*virtual_map)(State& s, const AddressRange& at, uint64_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags);
  CUresult (*virtual_unmap)(State& s, const VirtualFound& found);
  CUresult (*virtual_wire)(State& s, CUmemGenericAllocationHandle handle,
                           CUmemGenericAllocationHandle* out);
  CUresult (*virtual_wire_range)(State& s, const AddressRange& range);
  CUresult (*virtual_export)(State& s, CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType type, CUmemGenericAllocationHandle* out);
  void (*virtual_end)(State& s);
};

extern const SwapTable g_swap;

}  // namespace gpurota::interposer
