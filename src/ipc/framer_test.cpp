#include "ipc/framer.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurota::ipc {
namespace {

using namespace std::string_literals;

std::vector<std::string> drain(Framer& framer) {
  std::vector<std::string> messages;
  while (auto message = framer.next()) messages.push_back(std::move(*message));
  return messages;
}

TEST(Framer, GivesTheSameMessagesHoweverTheBytesArrive) {
  const std::string stream = "one\0\0two and more\0three\0rest"s;
  const std::vector<std::string> expected{"one", "", "two and more", "three"};
  for (std::size_t chunk = 1; chunk <= stream.size(); ++chunk) {
    Framer framer(100);
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < stream.size(); at += chunk) {
      ASSERT_TRUE(framer.feed(std::string_view(stream).substr(at, chunk)));
      for (std::string& message : drain(framer)) seen.push_back(std::move(message));
    }
    EXPECT_EQ(seen, expected) << "in chunks of " << chunk;
    EXPECT_EQ(framer.buffered(), 4u);
  }
}

TEST(Framer, TakesAMessageOfExactlyTheLimit) {
  Framer framer(4);
  ASSERT_TRUE(framer.feed("abcd"));
  ASSERT_TRUE(framer.feed("\0wxyz\0"s));
  EXPECT_EQ(drain(framer), (std::vector<std::string>{"abcd", "wxyz"}));
}

TEST(Framer, FailsAtTheFirstByteBeyondTheLimit) {
  for (const std::vector<std::string>& feeds :
       {std::vector<std::string>{"abcde"}, {"abcd", "e"}, {"ab", "cde\0"s}, {"ok\0abcde"s}}) {
    Framer framer(4);
    Result<void> last;
    for (const std::string& bytes : feeds) last = framer.feed(bytes);
    ASSERT_FALSE(last);
    EXPECT_EQ(last.error().code, Code::kLimit);
    EXPECT_FALSE(framer.next());
    EXPECT_FALSE(framer.feed("x\0"s)) << "a lost stream stays lost";
  }
}

TEST(Framer, KeepsOnlyMessagesNotYetReturned) {
  Framer framer(1 << 20);
  const std::string message(1000, 'x');
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(framer.feed(message + "\0"s));
    ASSERT_TRUE(framer.next());
  }
  EXPECT_EQ(framer.buffered(), 0u);
}

TEST(OutputBuffer, KeepsUnwrittenBytesInOrder) {
  OutputBuffer out(16);
  ASSERT_TRUE(out.append("hello\0"s));
  ASSERT_TRUE(out.append("you"));
  EXPECT_EQ(out.pending(), "hello\0you"s);
  out.consume(6);
  EXPECT_EQ(out.pending(), "you");
  ASSERT_TRUE(out.append("!"));
  EXPECT_EQ(out.pending(), "you!");
  out.consume(4);
  EXPECT_TRUE(out.empty());
}

TEST(OutputBuffer, RefusesBytesBeyondTheLimitAsAWhole) {
  OutputBuffer out(8);
  ASSERT_TRUE(out.append("12345678"));
  EXPECT_FALSE(out.append("9"));
  out.consume(4);
  EXPECT_FALSE(out.append("abcde"));
  EXPECT_TRUE(out.append("abc\0"s));
  EXPECT_EQ(out.pending(), "5678abc\0"s);
}

}  // namespace
}  // namespace gpurota::ipc
