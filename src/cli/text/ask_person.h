// Questions to the person at the terminal.
#pragma once

#include <string>

namespace gpurota::cli {

// Whether there is a terminal for questions and answers.
bool can_ask();
// Prints the question on standard error and returns the typed answer: at most 255 bytes; empty also
// at the end of the input.
std::string ask_person(const std::string& question);

}  // namespace gpurota::cli
