// How ssh is called. Reads the environment; starts nothing.
#pragma once

#include <string>
#include <vector>

namespace gpurota::cli {

// $GPUROTA_SSH, the path of another program that takes what ssh takes; else ssh.
std::string ssh_program();

// To ask a question: nobody is at hand to type a password, and only the answer is wanted. `line`:
// for the shell there.
std::vector<std::string> asking_words(const std::string& host, const std::string& line);
// To run a program with our standard streams. Without a terminal it has a connection of its own,
// not one that is shared: only its end tells the program that we are gone.
std::vector<std::string> running_words(const std::string& host, const std::string& line,
                                       bool terminal);

}  // namespace gpurota::cli
