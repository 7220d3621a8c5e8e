#include "program.h"

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::interposer_test {

Program::Program(const std::vector<std::string>& argv,
                 const std::map<std::string, std::string>& extra) {
  int in[2] = {-1, -1};
  int out[2] = {-1, -1};
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    for (const auto& [name, value] : extra) {
      if (value.empty()) {
        ::unsetenv(name.c_str());
      } else {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
    }
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  in_ = Fd(in[1]);
  out_ = Fd(out[0]);
}

Program::~Program() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

void Program::write_line(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(in_.get(), text.data(), text.size()) < 0) std::abort();
}

std::string Program::read_line() {
  std::string line;
  char c = 0;
  while (::read(out_.get(), &c, 1) == 1 && c != '\n') line += c;
  return line;
}

std::string Program::read_all() {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(out_.get(), buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

int Program::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Program::signal(int number) const { ::kill(pid_, number); }

}  // namespace gpurota::interposer_test
