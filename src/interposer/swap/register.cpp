// The functions of a swap lease that the folders below swap/ call.
#include "interposer/account/swap_table.h"
#include "interposer/swap/allocations.h"
#include "interposer/swap/freed.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/grow.h"
#include "interposer/swap/opened.h"
#include "interposer/swap/orders.h"
#include "interposer/swap/swap_allocate.h"
#include "interposer/swap/virtual_memory.h"
#include "interposer/swap/worker.h"

namespace gpurota::interposer {
namespace {

// Also in a lease that does not move memory: the process may have opened memory of another process.
void free_context(State& s, uint32_t serial) {
  end_opened_in(s, serial);
  if (swapping()) swap_free_context(s, serial);
}

}  // namespace

const SwapTable g_swap = {
    .begin = begin_swapping,
    .connected = swap_connected,
    .lost = swap_lost,
    .take_order = take_swap_order,
    .poke = poke_worker,
    .grow = swap_grow,
    .shrink = swap_shrink,
    .unpark = swap_unpark,
    .forget_events = swap_forget_events,
    .forget_context = swap_forget_context,
    .free_context = free_context,
    .context_returned = swap_context_returned,
    .allocate = swap_allocate,
    .allocate_pitch = swap_allocate_pitch,
    .allocate_async = swap_allocate_async,
    .free = swap_free,
    .free_async = swap_free_async,
    .end_freed_if_idle = swap_end_freed_if_idle,
    .moves = swap_moves,
    .stream_gone = swap_stream_gone,
    .virtual_create = virtual_create,
    .virtual_map = virtual_map,
    .virtual_unmap = virtual_unmap,
    .virtual_wire = virtual_wire,
    .virtual_wire_range = virtual_wire_range,
    .virtual_export = virtual_export,
    .virtual_end = virtual_end,
};

}  // namespace gpurota::interposer
