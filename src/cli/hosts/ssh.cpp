#include "cli/hosts/ssh.h"

#include <cstdlib>

namespace gpurota::cli {

std::string ssh_program() {
  const char* const other = std::getenv("GPUROTA_SSH");
  return other != nullptr && *other != '\0' ? other : "ssh";
}

std::vector<std::string> asking_words(const std::string& host, const std::string& line) {
  std::vector<std::string> words = {ssh_program(), "-T"};
  for (const char* const setting : {"BatchMode=yes", "ClearAllForwardings=yes", "LogLevel=ERROR"}) {
    words.insert(words.end(), {"-o", setting});
  }
  words.insert(words.end(), {"--", host, line});
  return words;
}

std::vector<std::string> running_words(const std::string& host, const std::string& line,
                                       bool terminal) {
  std::vector<std::string> words = {ssh_program()};
  if (terminal) {
    words.emplace_back("-t");
  } else {
    words.insert(words.end(), {"-T", "-S", "none"});
  }
  words.insert(words.end(), {"-o", "LogLevel=ERROR", "--", host, line});
  return words;
}

}  // namespace gpurota::cli
