// The messages of a swap tenant to the daemon (abi/wire_swap.h), and the tenant's copy of the
// books.
//
// Every change of the books and its message are one step under Swap::books_mutex, so that SWAP_HERE
// tells the next daemon exactly what the last one knew. The books also change while there is no
// daemon. Any thread.
#pragma once

#include "interposer/swap/tenant.h"

#include <cstdint>

namespace gpurota::interposer {

// Memory was freed, or a grant is not needed.
void swap_shrink(int slot, uint64_t resident, uint64_t out, uint64_t wired, uint64_t hosted = 0);

// A granted context was not made, or is gone; `left`: contexts that still live.
void swap_context_returned(int slot, uint32_t left);

// Takes all evicted memory of a GPU off the books: no context lives, so nobody can use or restore
// it. With GatePart::contexts_mutex held.
void swap_park(int slot);
// A context lives again. Puts parked memory back on the books; a new connection tells the daemon,
// and the memory is restored with a turn. The gate is kAway until then. With
// GatePart::contexts_mutex held.
void swap_unpark(State& s);
uint64_t swap_parked(int slot);

// The worker calls swap_moved() after a block has moved; `clean` bytes of the block did not have to
// be copied. The worker calls swap_order_ended() after an order; `failed`: 0, or enum
// gpurota_swap_failure.
void swap_moved(int slot, gpurota_swap_direction direction, uint64_t bytes, uint64_t clean);
void swap_order_ended(int slot, gpurota_swap_direction direction, uint32_t failed,
                      uint64_t returned);
// False: the message could not be sent.
bool swap_say_status(uint32_t gate_seq, bool busy, uint32_t waiting, uint32_t ready,
                     uint64_t pinned);
// Sends SWAP_HERE on a new connection, if that is due. The worker calls it between moves, because
// the books and the GPU must agree.
void swap_say_here();

// Whether waiting for the daemon is of no use: it has been away for GPUROTA_WAIT_MS or has refused
// this process, or the worker was not started.
bool swap_gone(const State& s);

// The helper calls swap_connected() when a connection begins, and swap_lost() when it ends.
void swap_connected(State& s, int fd, uint64_t inode);
void swap_lost(State& s);

// With Swap::books_mutex held.
bool swap_send_ask(Swap& swap, const SwapAsk& ask);
bool swap_send(Swap& swap, void* message, size_t size, uint16_t type, uint32_t seq);
void swap_lose(Swap& swap);

}  // namespace gpurota::interposer
