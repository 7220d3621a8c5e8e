// Maps CUDA devices and contexts to the slots of the lease, and records which contexts live.
//
// Lookups are lock-free and cost a few nanoseconds once a context is known. Any thread.
#pragma once

#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// Where an allocation lands.
struct Place {
  enum class Kind {
    kSlot,       // on a GPU of the lease
    kForeign,    // on a GPU that is not of the lease, or the daemon is away and never answered
    kNoContext,  // no context: the driver itself returns the error
  };
  Kind kind;
  int slot;
  uint32_t context;  // serial
};

// The slot of a device, -1 if the lease does not have it. Attaches.
int slot_of_device(CUdevice device);

Place place_of_context(CUcontext context);
// nullptr if the context is gone.
CUcontext context_of_serial(uint32_t serial);
// nullptr: no context is current.
CUcontext current_context();
Place current_place();
// The slot of the program's GPU, which has all its streams, if the program sees only one GPU; else
// -1.
int only_slot();
Place place_of_one_of_many(CUstream stream, bool per_thread);
// Where `stream`'s work runs; `per_thread`: the function is of the per-thread stream family.
// Inline: a call would return the Place through the stack in pieces, and the processor would wait
// for the pieces.
inline Place place_of_stream(CUstream stream, bool per_thread) {
  const int only = only_slot();
  return only >= 0 ? Place{Place::Kind::kSlot, only, 0} : place_of_one_of_many(stream, per_thread);
}

// Makes `context` current on this thread for the lifetime of the object.
class InContext {
 public:
  explicit InContext(CUcontext context);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  bool pushed_ = false;
};

// Records a new context and returns its serial; 0: the table is full. `charged`: the context is
// counted in Slot::contexts.
uint32_t add_context(CUcontext context, CUdevice device, int slot, bool primary, bool charged);

// Removes a context. True if the context was known; `out` then describes it.
struct ContextInfo {
  CUcontext context;
  uint32_t serial;
  CUdevice device;
  int slot;
  bool charged;
};
bool remove_context(CUcontext context, ContextInfo* out);
// set_context_aside() and settle_aside() go around the driver call that destroys a context: before
// that call returns, the driver may give the same handle to a new context. Below zero: the context
// is not known.
int set_context_aside(CUcontext context, ContextInfo* out);
void settle_aside(int entry, CUcontext context, bool gone);
// Whether any GPU of the lease has a live context.
bool any_context();
// Adds `by` to the references of a context (cuCtxAttach). Returns the new count, 1 if the context
// is not known.
uint32_t refer(CUcontext context, int by);
// Records the context through which a green context is used. Memory in the green context ends with
// the context of `serial`.
void add_view(CUcontext view, CUgreenCtx green, CUdevice device, int slot, uint32_t serial);
bool find_view(CUgreenCtx green, ContextInfo* out);
bool remove_view(CUgreenCtx green, ContextInfo* out);
bool find_primary(CUdevice device, ContextInfo* out);

}  // namespace gpurota::interposer
