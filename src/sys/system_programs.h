// Runs programs as children of this process or, if systemd started us, as units through
// systemd-run. State thread only; starting a program takes one fork.
//
// A child runs as the named user in its own session, in /, with an environment of three variables;
// whatever it leaves behind is killed with it. A unit runs outside our sandbox, which a child
// cannot leave: it can become that user and use the network. The program's input is a file in
// memory, so nobody waits until it is read. Of standard error, the first line is kept.
#pragma once

#include "ports/accounts.h"
#include "ports/event_loop.h"
#include "ports/program_runner.h"
#include "sys/worker.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::sys {

class SystemPrograms final : public ports::ProgramRunner {
 public:
  // `systemd_run`: empty where programs run as our children. `accounts` is shared, because a lookup
  // that hangs may outlive this object.
  SystemPrograms(ports::EventLoop& loop, std::shared_ptr<ports::Accounts> accounts,
                 std::string systemd_run);
  ~SystemPrograms() override;

  void run(const ports::Program& program,
           std::function<void(const ports::ProgramEnd&)> done) override;

 private:
  // The user that a child becomes.
  struct Identity {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
  };
  struct Run;

  static Result<Identity> look_up(ports::Accounts& accounts, const std::string& user);
  std::vector<std::string> words_of(const ports::Program& program) const;
  void start(std::uint64_t id, const Identity* identity);
  Result<void> fork(Run& run, const Identity* identity);
  Result<void> watch(std::uint64_t id, Run& run);
  void on_output(Run& run) const;
  void on_lines(Run& run) const;
  void on_death(std::uint64_t id);
  void on_time(std::uint64_t id);
  void refuse(std::uint64_t id, const Error& why);
  void finish(std::uint64_t id);

  ports::EventLoop& loop_;
  std::shared_ptr<ports::Accounts> accounts_;
  const std::string systemd_run_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Run>> runs_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // posted tasks hold it weakly
  Worker worker_;                                         // calls accounts_
};

}  // namespace gpurota::sys
