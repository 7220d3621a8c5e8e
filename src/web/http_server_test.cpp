#include "web/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace gpurota::web {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A server on a thread of its own: /live is a stream, everything else "quick".
class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto at = listen_at({"127.0.0.1", 0});
    ASSERT_TRUE(at) << at.error().message;
    port = at->address.port;
    std::vector<Listener> listeners;
    listeners.push_back(std::move(*at));
    auto made = HttpServer::make(std::move(listeners),
                                 {.quick =
                                      [](const HttpRequest& request) {
                                        HttpResponse response{200, "quick\n"};
                                        response.is_stream = request.path == "/live";
                                        if (request.path == "/large")
                                          response.body.assign(8u << 20, 'x');
                                        if (response.is_stream) response.body = ": begins\n\n";
                                        return std::optional(response);
                                      },
                                  .slow = [](const HttpRequest&) { return HttpResponse{}; },
                                  .event =
                                      [this] {
                                        ++events;
                                        return "data: " + std::string(event_bytes, 'x') + "\n\n";
                                      }},
                                 places);
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
    thread = std::thread([this] {
      while (!over) server->serve(20ms);
    });
  }
  void TearDown() override {
    over = true;
    if (thread.joinable()) thread.join();
  }

  // `receive_bytes`: how much the client's kernel buffers without being read.
  Fd connect(const std::string& path, int receive_bytes = 0) const {
    Fd socket = connect_only(receive_bytes);
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    return socket;
  }
  Fd connect_only(int receive_bytes = 0) const {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_bytes > 0) {
      (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }
  // Reads until `text` arrives, or the end.
  static std::string read_until(const Fd& socket, const std::string& text) {
    std::string all;
    char piece[4096];
    while (all.find(text) == all.npos) {
      const ssize_t got = ::recv(socket.get(), piece, sizeof piece, 0);
      if (got <= 0) break;
      all.append(piece, static_cast<std::size_t>(got));
    }
    return all;
  }

  std::atomic<int> events{0};
  HttpServer::Places places;
  std::size_t event_bytes = 10;
  std::atomic<bool> over{false};
  int port = 0;
  std::unique_ptr<HttpServer> server;
  std::thread thread;
};

TEST_F(HttpServerTest, AViewerGetsTheStateAtOnceAndStays) {
  const Fd viewer = connect("/live");
  const std::string begin = read_until(viewer, "data: xxxxxxxxxx\n\n");
  EXPECT_THAT(begin, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(begin.find("Content-Length"), std::string::npos);
  EXPECT_THAT(begin, HasSubstr(": begins\n\ndata: xxxxxxxxxx\n\n"));
  EXPECT_THAT(read_until(viewer, "\n\n"), HasSubstr("data: xxxxxxxxxx\n\n"));
}

TEST_F(HttpServerTest, AllViewersGetTheSameState) {
  std::vector<Fd> viewers;
  for (int i = 0; i < 50; ++i) viewers.push_back(connect("/live"));
  for (const Fd& viewer : viewers) EXPECT_THAT(read_until(viewer, "data: "), HasSubstr("data: "));
  // One for the first viewer and one for each period since, not one for each viewer.
  EXPECT_LT(events, 10);
}

TEST_F(HttpServerTest, AnswersThatNobodyReadsTakeABoundedPartOfTheMemory) {
  std::vector<Fd> idle;
  for (int i = 0; i < 12; ++i) idle.push_back(connect("/large", 4096));
  const std::string refused = read_until(connect("/large"), "moment");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(read_until(connect("/"), "quick"), HasSubstr("quick"));
  idle.clear();
  std::string again = refused;  // until the server has noticed the hangups
  while (again.starts_with("HTTP/1.1 503")) again = read_until(connect("/large"), "\r\n\r\n");
  EXPECT_THAT(again, StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ViewerBeyondTheLimitIsRefusedAndOthersAreServed) {
  std::vector<Fd> viewers;
  for (std::size_t i = 0; i < Viewers::kMost; ++i) {
    viewers.push_back(connect("/live"));
    ASSERT_THAT(read_until(viewers.back(), ": begins\n\n"), HasSubstr("200 OK"));
  }
  const std::string refused = read_until(connect("/live"), "\n\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr("200 viewers watch already"));
  EXPECT_THAT(read_until(connect("/"), "quick"), HasSubstr("quick"));
  // A viewer that leaves makes a place free.
  viewers.pop_back();
  std::string next;
  for (int tries = 0; tries < 500 && next.find("200 OK") == next.npos; ++tries) {
    viewers.push_back(connect("/live"));
    next = read_until(viewers.back(), "\r\n\r\n");
    if (next.find("200 OK") == next.npos) viewers.pop_back();
  }
  EXPECT_THAT(next, HasSubstr("200 OK"));
}

TEST(Viewers, OneThatDoesNotReadIsDroppedAndMissesStatesBefore) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const Fd reader(ends[0]);
  Viewers viewers;
  const Viewers::Clock::time_point start{};
  viewers.add(Stream(Fd(ends[1])), "a", "head", start);
  const std::string large(4 << 20, 'x');
  for (int i = 0; i < 5; ++i) viewers.show(large, start);
  EXPECT_EQ(viewers.size(), 1U);
  EXPECT_EQ(viewers.next_deadline(), start + Viewers::kPatience);
  std::vector<pollfd> polled;
  viewers.add_polled(polled);
  ASSERT_EQ(polled.size(), 1U);
  viewers.on_polled(polled.cbegin(), start + Viewers::kPatience - 1s);
  EXPECT_EQ(viewers.size(), 1U);
  viewers.on_polled(polled.cbegin(), start + Viewers::kPatience);
  EXPECT_TRUE(viewers.is_empty());
}

class FewPlaces : public HttpServerTest {
 protected:
  FewPlaces() { places = {4, 2}; }
};

TEST_F(FewPlaces, FreedSlotsAreReused) {
  std::vector<Fd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect_only());
  EXPECT_THAT(read_until(connect("/"), "quick\n"), HasSubstr("200 OK"));
}

TEST(Places, FollowFromTheDescriptorsThatTheProcessMayHave) {
  const auto few = HttpServer::places_for(64);
  EXPECT_EQ(few.connections + few.viewers, 23u) << "24 beside its own 40, rounded down twice";
  EXPECT_GT(few.viewers, 5u);
  EXPECT_GE(HttpServer::places_for(0).viewers, 3u);
  for (const std::uint64_t many : {std::uint64_t{1024}, UINT64_MAX}) {
    EXPECT_EQ(HttpServer::places_for(many).connections, 256u);
    EXPECT_EQ(HttpServer::places_for(many).viewers, 200u);
  }
}

TEST(Viewers, AGroupThatTakesAllPlacesMakesRoomForOthers) {
  Viewers viewers;
  std::vector<Fd> readers;
  const Viewers::Clock::time_point start{};
  const auto add = [&](const std::string& group) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    readers.emplace_back(ends[0]);
    viewers.add(Stream(Fd(ends[1])), group, "head", start);
  };
  add("192.0.2.1");
  for (std::size_t i = 1; i < Viewers::kMost; ++i) add("192.0.2.66");
  EXPECT_FALSE(viewers.has_room("192.0.2.66"));
  EXPECT_TRUE(viewers.has_room("192.0.2.1"));
  EXPECT_TRUE(viewers.has_room("192.0.2.2"));
  add("192.0.2.2");
  EXPECT_EQ(viewers.size(), Viewers::kMost);
  char byte = 0;
  EXPECT_EQ(::recv(readers[0].get(), &byte, 1, 0), 1) << "it is still there";
  char text[8];
  EXPECT_EQ(::recv(readers[1].get(), text, sizeof text, 0), 4);
  EXPECT_EQ(::recv(readers[1].get(), text, sizeof text, 0), 0) << "that one has gone";
}

TEST(Viewers, OneThatReadsSlowlyGetsTheNewestNext) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const Fd reader(ends[0]);
  Viewers viewers;
  const Viewers::Clock::time_point start{};
  viewers.add(Stream(Fd(ends[1])), "a", "head", start);
  const std::string large(4 << 20, 'x');
  viewers.show(large, start);
  viewers.show("skipped", start);
  viewers.show("newest", start);
  std::string all;
  std::vector<char> piece(1 << 16);
  for (int quiet = 0; quiet < 2;) {
    std::vector<pollfd> polled;
    viewers.add_polled(polled);
    polled[0].revents = POLLOUT;
    viewers.on_polled(polled.cbegin(), start);
    const ssize_t got = ::recv(reader.get(), piece.data(), piece.size(), 0);
    quiet = got > 0 ? 0 : quiet + 1;
    if (got > 0) all.append(piece.data(), static_cast<std::size_t>(got));
  }
  EXPECT_EQ(all, "head" + large + "newest");
  EXPECT_EQ(viewers.next_deadline(), Viewers::Clock::time_point::max());
}

}  // namespace
}  // namespace gpurota::web
