// How the files of this room speak with the daemon. All with Link::mutex held.
#pragma once

#include "interposer/account/answer.h"
#include "interposer/account/state.h"
#include "interposer/os/socket.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// Whether there is a connection; one that the program has closed is none.
bool connected(State& s);
// Waits for a daemon as growth does.
bool ensure_connected(State& s);
// Why there is none.
Answer why_not(const State& s);
// One question and its answer, whose descriptors come to `fds`. False ends the connection; `sent`
// says whether the daemon may have read it.
bool ask(State& s, void* question, size_t size, uint16_t answer_type, void* answer,
         size_t answer_size, Descriptors* fds = nullptr, bool* sent = nullptr);
// A message without an answer. Its seq stays 0: it answers no RECALL.
void tell(State& s, void* message, size_t size);

}  // namespace gpurota::interposer
