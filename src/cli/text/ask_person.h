// Questions to whoever sits at the terminal.
#pragma once

#include <string>

namespace gpurota::cli {

// Whether there is a terminal to ask on and to read from.
bool can_ask();
// Puts the question on standard error, and gives what was typed in answer: at most 255 bytes, empty
// also at the end of the input.
std::string ask_person(const std::string& question);

}  // namespace gpurota::cli
