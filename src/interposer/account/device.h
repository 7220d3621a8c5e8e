// Which slot of the lease a CUDA device or context is, and which contexts live.
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
    kNoContext,  // nowhere: the driver will say so itself
  };
  Kind kind;
  int slot;
  uint32_t context;  // serial
};

// The slot of a device, -1 if the lease does not have it. Attaches.
int slot_of_device(CUdevice device);

Place place_of_context(CUcontext context);
// nullptr if it is gone.
CUcontext context_of_serial(uint32_t serial);
// nullptr: none is current.
CUcontext current_context();
Place current_place();
// The slot of the only GPU that the program sees, on which every stream is then; else -1.
int only_slot();
Place place_of_one_of_many(CUstream stream, bool per_thread);
// Where `stream`'s work runs; `per_thread`: the function is of the per-thread stream family.
// Inline: a Place that a call returns goes through the stack, in pieces that the processor has to
// wait for.
inline Place place_of_stream(CUstream stream, bool per_thread) {
  const int only = only_slot();
  return only >= 0 ? Place{Place::Kind::kSlot, only, 0} : place_of_one_of_many(stream, per_thread);
}

// While it lives, `context` is current on this thread.
class InContext {
 public:
  explicit InContext(CUcontext context);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  bool pushed_ = false;
};

// A context was created; `charged`: it is counted in Slot::contexts. Returns its serial.
uint32_t add_context(CUcontext context, CUdevice device, int slot, bool primary, bool charged);

// Removes a context; true if it was known, with what it was.
struct ContextInfo {
  CUcontext context;
  uint32_t serial;
  CUdevice device;
  int slot;
  bool charged;
};
bool remove_context(CUcontext context, ContextInfo* out);
// Around a call of the driver's that destroys it: the driver may give its handle to the next one
// that is made before that call is back. Below zero: it is not known.
int set_context_aside(CUcontext context, ContextInfo* out);
void settle_aside(int entry, CUcontext context, bool gone);
// Whether any context lives, of any GPU of the lease.
bool any_context();
// Adds to the references of a context (cuCtxAttach); what is left, 1 if it is not known.
uint32_t refer(CUcontext context, int by);
// The context as which a green context is used; what lives in it goes with the context of `serial`.
void add_view(CUcontext view, CUgreenCtx green, CUdevice device, int slot, uint32_t serial);
bool find_view(CUgreenCtx green, ContextInfo* out);
bool remove_view(CUgreenCtx green, ContextInfo* out);
bool find_primary(CUdevice device, ContextInfo* out);

}  // namespace gpurota::interposer
