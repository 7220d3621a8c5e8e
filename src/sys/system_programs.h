// Runs programs as children of this process, or, where systemd has started us, as units that
// systemd-run asks for. State thread only; starting one takes a fork.
//
// A child is in a session of its own, in /, with an environment of three variables, as the user
// that was named; whatever it leaves behind is killed with it. A unit is outside of our sandbox,
// which a child could not leave: it may become that user, and use the network. The text is in a
// file in memory, so nobody waits until it is read; of what comes on standard error the first line
// is kept.
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
  // `systemd_run`: empty where programs are our children. Shared: a question that hangs outlives
  // this.
  SystemPrograms(ports::EventLoop& loop, std::shared_ptr<ports::Accounts> accounts,
                 std::string systemd_run);
  ~SystemPrograms() override;

  void run(const ports::Program& program,
           std::function<void(const ports::ProgramEnd&)> done) override;

 private:
  // Whom a child becomes.
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
  void on_death(std::uint64_t id);
  void on_time(std::uint64_t id);
  void refuse(std::uint64_t id, const Error& why);
  void finish(std::uint64_t id);

  ports::EventLoop& loop_;
  std::shared_ptr<ports::Accounts> accounts_;
  const std::string systemd_run_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Run>> runs_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // what is posted holds it weakly
  Worker worker_;                                         // asks accounts_
};

}  // namespace gpurota::sys
