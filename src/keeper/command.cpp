#include "keeper/command.h"

#include "abi/env.h"
#include "base/login_path.h"
#include "base/program_signals.h"
#include "base/text.h"
#include "keeper/journal.h"
#include "keeper/login_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <shadow.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name, home, shell;
  std::vector<gid_t> groups;
};

constexpr long kSecondsADay = 86400;
constexpr const char* kSecurity = "/etc/security";

Result<void> check_expiry(const std::string& name) {
  // Only root can read the shadow file, and only root starts commands of others.
  const spwd* shadow = ::getspnam(name.c_str());
  if (shadow != nullptr && shadow->sp_expire > 0 &&
      shadow->sp_expire <= ::time(nullptr) / kSecondsADay) {
    return fail(Code::kDenied, fmt::format("the account {} has expired", display_text(name, 40)));
  }
  return {};
}

// A keeper that is not root starts only what its user could start, so it needs no account. A
// container may have no account for that user.
bool is_its_own(const jobs::KeeperOrders& orders) {
  return ::geteuid() != 0 && ::geteuid() == orders.uid;
}

Account without_account(const jobs::KeeperOrders& orders) {
  const char* const home = std::getenv("HOME");
  const bool is_there = home != nullptr && home[0] == '/';
  return {orders.uid, ::getegid(), orders.user, is_there ? home : "/", "/bin/sh", {}};
}

Result<Account> find_account(const jobs::KeeperOrders& orders) {
  const passwd* entry = ::getpwuid(orders.uid);
  if (entry == nullptr && is_its_own(orders)) return without_account(orders);
  if (entry == nullptr) {
    return fail(Code::kDenied,
                fmt::format("there is no longer an account with uid {}", orders.uid));
  }
  if (orders.user != entry->pw_name && !is_its_own(orders)) {
    return fail(Code::kDenied,
                fmt::format("uid {} was {} when the job was added, and is {} now", orders.uid,
                            display_text(orders.user, 40), display_text(entry->pw_name, 40)));
  }
  Account account{entry->pw_uid, entry->pw_gid, entry->pw_name, entry->pw_dir, entry->pw_shell, {}};
  GPUROTA_TRY(check_expiry(account.name));
  int count = 64;
  account.groups.resize(static_cast<std::size_t>(count));
  while (::getgrouplist(account.name.c_str(), account.gid, account.groups.data(), &count) < 0) {
    account.groups.resize(
        std::max<std::size_t>(static_cast<std::size_t>(count), account.groups.size() * 2));
    count = static_cast<int>(account.groups.size());
  }
  account.groups.resize(static_cast<std::size_t>(count));
  return account;
}

// A run of a job has its own lease, so variables of a lease in whose shell the job was added are
// left out.
bool names_a_lease(const std::string& name) {
  constexpr const char* kNames[] = {GPUROTA_ENV_LEASE, GPUROTA_ENV_TOKEN, GPUROTA_ENV_SOCKET,
                                    GPUROTA_ENV_WHOLE};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The variables of a login, and those that the owner asked for; none of the daemon's.
std::vector<std::string> environment_for(const Account& account, const jobs::KeeperOrders& orders) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"HOME", account.home},
      {"LOGNAME", account.name},
      {"USER", account.name},
      {"SHELL", account.shell},
      {"PATH", kLoginPath},
      // On a pipe, Python writes nothing before it has 8 KiB.
      {"PYTHONUNBUFFERED", "1"},
      {"GPUROTA_RUNTIME_DIR", orders.runtime_dir},
      {"GPUROTA_JOB", orders.spec.name}};
  if (orders.spec.tty) variables.emplace_back("TERM", "xterm-256color");
  for (const auto& [name, value] : orders.spec.environment) {
    if (names_a_lease(name)) continue;
    const std::string& wanted = name;
    const auto known = std::find_if(variables.begin(), variables.end(),
                                    [&](const auto& each) { return each.first == wanted; });
    if (known == variables.end()) {
      variables.emplace_back(name, value);
    } else {
      known->second = value;
    }
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

struct Plan {
  Account account;
  std::string program, workdir;
  std::vector<char*> argv, environment;
  bool change_user = false;
  std::vector<LoginLimit> limits;
  std::optional<std::string> journal;  // the job's name, if its output goes there
  bool tty = false;                    // its output is a terminal
};

void write_once(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, text, std::strlen(text));
  (void)::close(fd);
}

void forget_our_limits() {
  // Undoes the daemon's own settings (few OOM kills, many open files): a job is like any program.
  write_once("/proc/self/oom_score_adj", "0");
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::min<rlim_t>(1024, files.rlim_max);
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  set_signals(ProgramSignals::none());
  (void)::umask(022);
}

std::vector<LoginLimit> limits_of(const Account& account) {
  LoginUser user{account.name, account.uid, account.groups, {}};
  for (const gid_t gid : account.groups) {
    if (const group* entry = ::getgrgid(gid)) user.group_names.emplace_back(entry->gr_name);
  }
  return parse_login_limits(read_limit_files(kSecurity), user);
}

// A limit that cannot be set stays as it is: in a container, no limit can be raised.
void set_limits(const std::vector<LoginLimit>& limits) {
  for (const LoginLimit& wanted : limits) {
    const auto resource = static_cast<__rlimit_resource>(wanted.resource);
    rlimit now = {};
    if (::getrlimit(resource, &now) != 0) continue;
    rlimit limit = merge(now, wanted);
    if (::setrlimit(resource, &limit) == 0) continue;
    limit.rlim_max = now.rlim_max;
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    (void)::setrlimit(resource, &limit);
  }
}

constexpr const char* kEnteringWorkdir = "entering its working directory";

constexpr winsize kTerminalSize = {24, 80, 0, 0};

struct Pair {
  Fd ours, its;
};

Result<Pair> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  return Pair{Fd(ends[0]), Fd(ends[1])};
}

// A terminal of the owner's, as after a login. Lines arrive as they are written ("\n"), and nothing
// is echoed, because nobody types there.
Result<Pair> make_terminal(const Account& account) {
  Pair pair{Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), Fd()};
  char name[64];
  if (!pair.ours || ::grantpt(pair.ours.get()) != 0 || ::unlockpt(pair.ours.get()) != 0 ||
      ::ptsname_r(pair.ours.get(), name, sizeof name) != 0) {
    return fail_errno("cannot make a terminal", errno);
  }
  pair.its = Fd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios modes = {};
  if (!pair.its || ::tcgetattr(pair.its.get(), &modes) != 0) {
    return fail_errno("cannot open a terminal", errno);
  }
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (::tcsetattr(pair.its.get(), TCSANOW, &modes) != 0 ||
      ::ioctl(pair.its.get(), TIOCSWINSZ, &kTerminalSize) != 0) {
    return fail_errno("cannot set a terminal", errno);
  }
  // Gives the terminal to the owner, so that the job can open it by name. A keeper that is not root
  // runs as the owner, who owns the terminal already.
  (void)!::fchown(pair.its.get(), account.uid, static_cast<gid_t>(-1));
  return pair;
}

// Runs in the child until exec. Returns what failed, with errno set.
const char* become(const Plan& plan, int output, pid_t keeper) {
  forget_our_limits();
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, 0) < 0) return "opening /dev/null";
  if (::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) return "connecting its output";
  if (nothing > 2) (void)::close(nothing);
  if (::setsid() < 0) return "making a session";
  if (plan.tty && ::ioctl(1, TIOCSCTTY, 0) != 0) return "taking its terminal";
  set_limits(plan.limits);
  if (plan.change_user) {
    const Account& account = plan.account;
    if (::setgroups(account.groups.size(), account.groups.data()) != 0) return "setting its groups";
    if (::setresgid(account.gid, account.gid, account.gid) != 0) return "setting its group";
    if (::setresuid(account.uid, account.uid, account.uid) != 0) return "becoming its user";
  }
  // Without its keeper a run has nobody to report to, so it ends with the keeper.
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || ::getppid() != keeper) return "its keeper ended";
  // Opened with the owner's rights, not with ours.
  if (plan.journal) {
    const auto stream = open_journal(*plan.journal);
    if (!stream || ::dup2(stream->get(), 1) < 0 || ::dup2(stream->get(), 2) < 0) {
      if (!stream) errno = stream.error().native;
      return "opening the journal";
    }
  }
  if (::chdir(plan.workdir.c_str()) != 0) return kEnteringWorkdir;
  (void)::execve(plan.program.c_str(), plan.argv.data(), plan.environment.data());
  return "executing gpurota";
}

struct Failure {
  int error;
  char what[64];
};

}  // namespace

Result<Command> start_command(const jobs::KeeperOrders& orders) {
  Plan plan;
  GPUROTA_ASSIGN_OR_RETURN(plan.account, find_account(orders));
  plan.change_user = ::geteuid() != orders.uid;
  plan.program = orders.gpurota;
  // A keeper that is not root has its own login's limits already.
  if (::geteuid() == 0) plan.limits = limits_of(plan.account);
  if (orders.spec.output == jobs::Output::kJournal) plan.journal = orders.spec.name;
  plan.tty = orders.spec.tty;
  plan.workdir = orders.spec.workdir.empty() ? plan.account.home : orders.spec.workdir;
  std::vector<std::string> words = {"gpurota", "run"};
  words.insert(words.end(), orders.spec.options.begin(), orders.spec.options.end());
  words.emplace_back("--");
  words.insert(words.end(), orders.spec.command.begin(), orders.spec.command.end());
  const std::vector<std::string> environment = environment_for(plan.account, orders);
  plan.argv = pointers(words);
  plan.environment = pointers(environment);

  GPUROTA_ASSIGN_OR_RETURN(Pair output, plan.tty ? make_terminal(plan.account) : make_pipe());
  GPUROTA_ASSIGN_OR_RETURN(Pair trouble, make_pipe());
  Command command{0, std::move(output.ours)};
  const pid_t keeper = ::getpid();
  command.pid = ::fork();
  if (command.pid < 0) return fail_errno("cannot fork", errno);
  if (command.pid == 0) {
    Failure failure = {};
    const char* what = become(plan, output.its.get(), keeper);
    failure.error = errno;
    (void)std::strncpy(failure.what, what, sizeof failure.what - 1);
    (void)!::write(trouble.its.get(), &failure, sizeof failure);
    ::_exit(127);
  }
  trouble.its.reset();
  Failure failure = {};
  if (::read(trouble.ours.get(), &failure, sizeof failure) == sizeof failure) {
    if (std::strcmp(failure.what, kEnteringWorkdir) != 0) {
      return fail_errno(std::string(failure.what) + " failed", failure.error);
    }
    return fail(
        Code::kNotFound,
        fmt::format("{} {} failed: {}; make it, or name another with --workdir", failure.what,
                    display_text(plan.workdir, 100), std::strerror(failure.error)),
        failure.error);
  }
  return command;
}

}  // namespace gpurota::keeper
