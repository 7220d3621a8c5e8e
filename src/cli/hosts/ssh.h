// How ssh is called. Reads the environment; starts nothing.
#pragma once

#include <string>
#include <vector>

namespace gpurota::cli {

// $GPUROTA_SSH, the path of another program with the same arguments as ssh; else ssh.
std::string ssh_program();

// For a question: without prompts, because nobody can type a password, and with only the answer as
// output. `line`: for the shell there.
std::vector<std::string> asking_words(const std::string& host, const std::string& line);
// For a program on `host` with our standard streams. Without a terminal, the program learns that we
// are gone only when its connection ends. A shared connection may outlive us, so ssh then opens a
// new connection for the program.
std::vector<std::string> running_words(const std::string& host, const std::string& line,
                                       bool terminal);

}  // namespace gpurota::cli
