// Measures the load that the control socket can handle: N connections, calls at a fixed rate spread
// over the connections, and how long the answers took. Open loop: calls are due at fixed times, and
// a latency counts from the due time, even if this program sent the call late.
//
//   control_load SOCKET CONNECTIONS CALLS-PER-SECOND SECONDS
//
// The mix: 6 of 10 calls are GetInfo, 2 Status, 1 ListProcesses, and 1 releases an unknown lease.
// Uses no code of gpurota, so that only the daemon is measured.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Connection {
  int fd = -1;
  std::deque<Clock::time_point> due;  // due times of unanswered calls
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("connect");
  }
  (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

std::string call_of(long number) {
  const char* method = "GetInfo";
  const char* parameters = "{}";
  if (number % 10 == 3 || number % 10 == 7) method = "Status";
  if (number % 10 == 5) method = "ListProcesses";
  if (number % 10 == 9) {
    method = "Release";
    parameters = R"({"lease_id":"L999999"})";
  }
  return std::string(R"({"method":"dev.gpurota.)") + method + R"(","parameters":)" + parameters +
         "}" + '\0';
}

// Reads what has arrived; each NUL ends one answer.
void read_answers(Connection& connection, std::vector<double>& latencies) {
  char buffer[65536];
  for (ssize_t got; (got = ::read(connection.fd, buffer, sizeof buffer)) != 0;) {
    if (got < 0) return;
    const auto now = Clock::now();
    const auto answers = std::count(buffer, buffer + got, '\0');
    for (long i = 0; i < answers && !connection.due.empty(); ++i) {
      latencies.push_back(
          std::chrono::duration<double, std::milli>(now - connection.due.front()).count());
      connection.due.pop_front();
    }
  }
  std::fprintf(stderr, "the daemon hung up\n");
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s SOCKET CONNECTIONS CALLS-PER-SECOND SECONDS\n", argv[0]);
    return 2;
  }
  const long count = std::atol(argv[2]), rate = std::atol(argv[3]), seconds = std::atol(argv[4]);
  std::vector<Connection> connections(static_cast<std::size_t>(count));
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    connections[i].fd = connect_to(argv[1]);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event) != 0) fail("epoll_ctl");
  }
  std::vector<double> latencies;
  const long calls = rate * seconds;
  latencies.reserve(static_cast<std::size_t>(calls));
  const auto begin = Clock::now();
  long sent = 0;
  while (static_cast<long>(latencies.size()) < calls) {
    const auto due = begin + std::chrono::nanoseconds(1000000000L / rate * sent);
    if (sent < calls && Clock::now() >= due) {
      Connection& to = connections[static_cast<std::size_t>(sent % count)];
      const std::string call = call_of(sent / count + sent);
      if (::write(to.fd, call.data(), call.size()) != static_cast<ssize_t>(call.size())) {
        fail("write");
      }
      to.due.push_back(due);
      ++sent;
    }
    epoll_event events[256];
    // Sleep until the next call is due: this program must not take the CPU from the daemon.
    const auto next = begin + std::chrono::nanoseconds(1000000000L / rate * sent);
    const auto wait = sent < calls ? std::max(std::chrono::nanoseconds(next - Clock::now()),
                                              std::chrono::nanoseconds(0))
                                   : std::chrono::nanoseconds(std::chrono::seconds(5));
    const timespec timeout{wait.count() / 1000000000L, wait.count() % 1000000000L};
    const int ready = ::epoll_pwait2(epoll, events, 256, &timeout, nullptr);
    for (int i = 0; i < ready; ++i) read_answers(connections[events[i].data.u64], latencies);
    if (ready == 0 && sent == calls) {
      std::fprintf(stderr, "%ld answers are missing\n",
                   calls - static_cast<long>(latencies.size()));
      return 1;
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  std::sort(latencies.begin(), latencies.end());
  const auto at = [&](double share) {
    return latencies[static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1))];
  };
  std::printf("%ld connections, %.0f calls/s: p50 %.2f ms, p90 %.2f, p99 %.2f, most %.2f\n", count,
              static_cast<double>(calls) / took, at(0.5), at(0.9), at(0.99), latencies.back());
  return 0;
}
