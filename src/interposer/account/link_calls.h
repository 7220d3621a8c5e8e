// How the files of account/ speak with the daemon. Call all of these functions with Link::mutex
// held.
#pragma once

#include "interposer/account/answer.h"
#include "interposer/account/state.h"
#include "interposer/os/socket.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// Whether there is a connection. A socket that the program has closed does not count.
bool connected(State& s);
// Connects if needed, and waits for the daemon as long as a request for memory does.
bool ensure_connected(State& s);
// Why there is no connection.
Answer why_not(const State& s);
// Sends a question and receives its answer, with descriptors in `fds`. False: the connection was
// ended. `sent`: whether the daemon may have read the question.
bool ask(State& s, void* question, size_t size, uint16_t answer_type, void* answer,
         size_t answer_size, Descriptors* fds = nullptr, bool* sent = nullptr);
// Sends a message that has no answer. The seq stays 0, as the message answers no RECALL.
void tell(State& s, void* message, size_t size);

}  // namespace gpurota::interposer
