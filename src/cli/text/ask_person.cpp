#include "cli/text/ask_person.h"

#include "cli/text/output.h"

#include <cstdio>

#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr int kLongestAnswer = 256;

}  // namespace

bool can_ask() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0; }

std::string ask_person(const std::string& question) {
  complain(question);
  char line[kLongestAnswer] = {};
  if (std::fgets(line, sizeof line, stdin) == nullptr) return {};
  std::string answer = line;
  while (!answer.empty() && (answer.back() == '\n' || answer.back() == ' ')) answer.pop_back();
  return answer;
}

}  // namespace gpurota::cli
