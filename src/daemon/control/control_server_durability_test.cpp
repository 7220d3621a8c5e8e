// Calls that change the store, with a disk that writes when the test says so.
#include "base/log.h"
#include "daemon/control/call_handler_test.h"
#include "daemon/control/control_server.h"
#include "ipc/unix_socket.h"
#include "testing/fake_event_loop.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

using ::testing::HasSubstr;

std::string call_of(const std::string& method, const std::string& parameters = "{}") {
  return "{\"method\":\"dev.gpurota." + method + "\",\"parameters\":" + parameters + "}" + '\0';
}
const std::string kRelease = call_of("Release", R"({"lease_id":"L1"})");
const std::string kStatus = call_of("Status");
const std::string kReport = call_of("Report");

class Disk final : public ports::Durability {
 public:
  std::uint64_t made() const override { return made_; }
  std::uint64_t told() const override { return told_; }
  bool is_open() const override { return open_; }
  void on_news(std::function<void(const News&)> listener) override { listener_ = listener; }

  void change() { ++made_; }
  void tell(std::optional<Error> error = {}) {
    told_ = made_;
    listener_({made_, std::move(error)});
  }
  void set_open(bool open) { open_ = open; }

 private:
  std::uint64_t made_ = 0, told_ = 0;
  bool open_ = true;
  std::function<void(const News&)> listener_;
};

class ControlServerDurability : public ::testing::Test, public QuietCalls {
 protected:
  ControlServerDurability() {
    log::set_level(log::Level::kError);
    ipc::ListenOptions options;
    options.type = SOCK_STREAM;
    options.mode = 0600;
    EXPECT_TRUE(server_.listen(*this, dir_.file("control.sock"), options));
    disk_.on_news([this](const ports::Durability::News& news) {
      server_.on_durability(news);
      loop_.run_until_idle();
    });
  }
  ~ControlServerDurability() override { log::set_level(log::Level::kInfo); }

  Fd connect() {
    auto fd = ipc::connect_unix(dir_.file("control.sock"), SOCK_STREAM, std::chrono::seconds(5));
    EXPECT_TRUE(fd);
    loop_.run_until_idle();
    return std::move(*fd);
  }
  void send(const Fd& fd, const std::string& bytes) {
    ASSERT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    loop_.run_until_idle();
  }
  // The output that has come, a line for each answer.
  static std::string heard(const Fd& fd) {
    char buffer[4096];
    const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    std::string text(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
    for (char& each : text) {
      if (each == '\0') each = '\n';
    }
    return text;
  }
  // A Release changes the store; nothing else does.
  Outcome call(const Caller&, const proto::Call& call) override {
    if (std::holds_alternative<proto::Release>(call.params)) disk_.change();
    Outcome outcome;
    outcome.answer = "{\"call\":" + std::to_string(++calls_) + "}";
    return outcome;
  }

  testing::TempDir dir_;
  testing::FakeEventLoop loop_;
  config::Config config_;
  Disk disk_;
  int calls_ = 0;
  UserBudgets budgets_{{config_, 1000, 0}};
  ControlServer server_{
      {.loop = loop_, .config = config_, .budgets = budgets_, .durability = &disk_}};
};

TEST_F(ControlServerDurability, ChangeIsAnsweredWhenItIsOnTheDisk) {
  const Fd changes = connect(), watcher = connect();
  send(changes, kRelease + kStatus);
  send(watcher, kStatus);
  EXPECT_EQ(heard(changes), "");
  EXPECT_EQ(heard(watcher), "{\"call\":2}\n") << "nobody else waits";
  disk_.tell();
  EXPECT_EQ(heard(changes), "{\"call\":1}\n{\"call\":3}\n") << "in the order of the calls";
}

TEST_F(ControlServerDurability, LostChangeIsReportedAsInDoubt) {
  const Fd client = connect();
  send(client, kRelease);
  disk_.tell(Error{Code::kIo, EIO, "the disk is gone"});
  EXPECT_THAT(heard(client), HasSubstr("done, but may not be stored: the disk is gone"));
  send(client, kStatus);
  EXPECT_EQ(heard(client), "{\"call\":2}\n");
}

TEST_F(ControlServerDurability, ACallThatNeedsTheStoreWaitsWhileItIsTidied) {
  const Fd changes = connect(), reads = connect(), watcher = connect();
  disk_.set_open(false);
  send(changes, kRelease);
  send(reads, kReport);
  send(watcher, kStatus);
  EXPECT_EQ(heard(watcher), "{\"call\":1}\n");
  EXPECT_EQ(calls_, 1);
  disk_.set_open(true);
  disk_.tell();
  EXPECT_NE(heard(reads), "");
  EXPECT_EQ(heard(changes), "") << "done, and not on the disk yet";
  disk_.tell();
  EXPECT_NE(heard(changes), "");
}

TEST_F(ControlServerDurability, CallOfAClientThatHungUpIsCarriedOut) {
  Fd client = connect();
  const std::size_t watched = loop_.watched_fds();
  disk_.set_open(false);
  send(client, kRelease);
  client.reset();
  loop_.run_until_idle();
  EXPECT_EQ(calls_, 0);
  disk_.set_open(true);
  disk_.tell();
  EXPECT_EQ(calls_, 1);
  disk_.tell();
  EXPECT_LT(loop_.watched_fds(), watched);
}

// While a change waits for the disk, further calls of the client are not read. Unread calls
// are not kept, and do not count as too many.
TEST_F(ControlServerDurability, ClientWithManyCallsBehindAChangeIsNotDisconnected) {
  const Fd client = connect();
  std::string many = kRelease;
  int count = 1;
  for (; many.size() < 2 * proto::kMaxCallBytes + 40000; ++count) many += kStatus;
  send(client, many);
  EXPECT_EQ(calls_, 1);
  disk_.tell();
  for (int i = 0; i < 10000 && calls_ < count; ++i) {
    (void)heard(client);
    loop_.run_until_idle();
  }
  EXPECT_EQ(calls_, count);
}

}  // namespace
}  // namespace gpurota::daemon
