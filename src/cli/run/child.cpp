#include "cli/run/child.h"

#include "cli/exit_codes.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Prepared before the fork, because the child may make only system calls.
struct Exec {
  explicit Exec(const CommandLine& command)
      : file(command.file.c_str()),
        shell_arguments({"sh", command.file}),
        argv(pointers(command.arguments)),
        envp(pointers(command.variables)) {
    // Like execvp for a script without "#!": the shell gets the file.
    for (std::size_t i = 1; i < command.arguments.size(); ++i) {
      shell_arguments.push_back(command.arguments[i]);
    }
    shell_argv = pointers(shell_arguments);
  }
  const char* file;
  std::vector<std::string> shell_arguments;
  std::vector<char*> argv, envp, shell_argv;
};

[[noreturn]] void run_child(const Exec& exec, int gate, int report, const ProgramSignals& signals) {
  char go = 0;
  ssize_t got = 0;
  do {
    got = ::read(gate, &go, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) ::_exit(kExitRunFailed);
  set_signals(signals);
  (void)::execve(exec.file, exec.argv.data(), exec.envp.data());
  if (errno == ENOEXEC) (void)::execve("/bin/sh", exec.shell_argv.data(), exec.envp.data());
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(error == ENOENT ? kExitNotFound : kExitCannotExecute);
}

Result<void> make_pipe(Fd& reading, Fd& writing) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  reading = Fd(ends[0]);
  writing = Fd(ends[1]);
  return {};
}

}  // namespace

Result<Child> Child::fork(const CommandLine& command, const ProgramSignals& signals) {
  const Exec exec(command);
  Fd gate_out, gate_in, report_out, report_in;
  GPUROTA_TRY(make_pipe(gate_out, gate_in));
  GPUROTA_TRY(make_pipe(report_out, report_in));
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start a process", errno);
  if (pid == 0) {
    gate_in.reset();  // else our own copy would keep the gate open
    run_child(exec, gate_out.get(), report_in.get(), signals);
  }
  return Child(pid, std::move(gate_in), std::move(report_out));
}

int Child::execute() {
  const char go = 1;
  // If the child was killed meanwhile, the pipe is broken; waitpid() will report it. SIGPIPE is
  // blocked.
  (void)!::write(gate_.get(), &go, 1);
  gate_.reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report_.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  report_.reset();
  return got == sizeof error ? error : 0;
}

void Child::abandon() {
  gate_.reset();
  (void)::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace gpurota::cli
