// The messages of a swap tenant to the daemon (abi/wire_swap.h), and the books that both keep.
//
// Every change of the books and the message that tells it are one step under Swap::books_mutex, so
// that what SWAP_HERE says to the next daemon is what the last one knew. While no daemon is there
// the books change all the same. Any thread.
#pragma once

#include "interposer/swap/tenant.h"

#include <cstdint>

namespace gpurota::interposer {

// Memory was freed, or what was granted is not needed.
void swap_shrink(int slot, uint64_t resident, uint64_t out, uint64_t wired, uint64_t hosted = 0);

// A context that was granted is not there, or not any more; `left`: contexts that are.
void swap_context_returned(int slot, uint32_t left);

// All that is out of a GPU leaves the books: no context lives, so nobody can use it, nor bring it
// back. With GatePart::contexts_mutex held.
void swap_park(int slot);
// A context lives again. A new connection tells the daemon of the memory that was parked, which
// comes back with a turn; until then the gate is away. With GatePart::contexts_mutex held.
void swap_unpark(State& s);
uint64_t swap_parked(int slot);

// The worker's: a block has moved, of which `clean` bytes did not have to be copied; and how an
// order ended. `failed`: 0, or enum gpurota_swap_failure.
void swap_moved(int slot, gpurota_swap_direction direction, uint64_t bytes, uint64_t clean);
void swap_order_ended(int slot, gpurota_swap_direction direction, uint32_t failed,
                      uint64_t returned);
// False if it could not be said.
bool swap_say_status(uint32_t gate_seq, bool busy, uint32_t waiting, uint32_t ready,
                     uint64_t pinned);
// Says SWAP_HERE on a new connection, if that is due; nothing may be on its way between the books
// and the GPU, so the worker does it between moves.
void swap_say_here();

// The daemon has been away for longer than anybody is to wait for it.
bool swap_gone(const State& s);

// The helper's: a connection begins, and ends.
void swap_connected(State& s, int fd, uint64_t inode);
void swap_lost(State& s);

// With Swap::books_mutex held.
bool swap_send_ask(Swap& swap, const SwapAsk& ask);
bool swap_send(Swap& swap, void* message, size_t size, uint16_t type, uint32_t seq);
void swap_lose(Swap& swap);

}  // namespace gpurota::interposer
