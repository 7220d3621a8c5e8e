#include "proto/framing.h"

#include <gtest/gtest.h>

namespace gpurota::proto {
namespace {

using namespace std::string_literals;

TEST(FrameReader, GivesMessagesInOrderHoweverTheyArrive) {
  const std::string stream = framed("{}") + framed("") + framed("[1]");
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader(16);
    std::vector<std::string> got;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      ASSERT_TRUE(reader.append(std::string_view(stream).substr(at, piece)));
      while (auto message = reader.next()) got.push_back(*message);
    }
    EXPECT_EQ(got, (std::vector<std::string>{"{}", "", "[1]"})) << piece;
    EXPECT_EQ(reader.pending(), 0u);
  }
}

TEST(FrameReader, RefusesAMessageOverTheLimitEvenBeforeItsEnd) {
  FrameReader reader(4);
  ASSERT_TRUE(reader.append("1234"));
  const auto over = reader.append("5");
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kLimit);
}

TEST(FrameReader, MessagesBeforeTheOversizedOneAreNotLost) {
  FrameReader reader(4);
  EXPECT_FALSE(reader.append("ok\0way too long"s));
  EXPECT_EQ(reader.next(), "ok");
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(FrameReader, TheLimitIsPerMessageNotPerRead) {
  FrameReader reader(4);
  EXPECT_TRUE(reader.append("1234\0001234\0001234\0"s));
  int messages = 0;
  while (reader.next()) ++messages;
  EXPECT_EQ(messages, 3);
}

}  // namespace
}  // namespace gpurota::proto
