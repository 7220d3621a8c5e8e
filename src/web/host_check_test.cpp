#include "web/host_check.h"

#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

TEST(Listen, IsLoopbackUnlessAnAddressIsGiven) {
  EXPECT_EQ(*parse_listen("9836"), (ListenAddress{"127.0.0.1", 9836}));
  EXPECT_EQ(*parse_listen(":0"), (ListenAddress{"127.0.0.1", 0}));
  EXPECT_EQ(*parse_listen("0.0.0.0:80"), (ListenAddress{"0.0.0.0", 80}));
  EXPECT_EQ(*parse_listen("[::1]:80"), (ListenAddress{"::1", 80}));
}

TEST(Listen, RefusesInvalidAddresses) {
  for (const char* text : {"", "x", "127.0.0.1:", "127.0.0.1:70000", "name:80", "[::1:80", "::1:x",
                           "127.0.0.1:-1", "\x1b:80"}) {
    EXPECT_FALSE(parse_listen(text)) << text;
  }
}

TEST(HostHeader, OfAnotherSiteIsRefused) {
  EXPECT_FALSE(is_our_host("evil.example", {}));
  EXPECT_FALSE(is_our_host("evil.example:9836", {}));
  EXPECT_FALSE(is_our_host("", {}));
  EXPECT_FALSE(is_our_host("localhost.evil.example", {}));
  EXPECT_FALSE(is_our_host("127.0.0.1.evil.example", {}));
  EXPECT_FALSE(is_our_host("[evil]", {}));
  EXPECT_FALSE(is_our_host("[", {}));
  EXPECT_FALSE(is_our_host(std::string("::1\0.evil.example", 17), {}));
  EXPECT_FALSE(is_our_host("[::1]evil.example", {}));
  EXPECT_FALSE(is_our_host("[::1]:\\\\evil.example", {}));
  EXPECT_FALSE(is_our_host("localhost:80@evil.example", {}));
}

TEST(HostHeader, OfThisMachineAndOfAllowedNamesIsAnswered) {
  EXPECT_TRUE(is_our_host("localhost", {}));
  EXPECT_TRUE(is_our_host("LocalHost:9836", {}));
  EXPECT_TRUE(is_our_host("127.0.0.1:9836", {}));
  EXPECT_TRUE(is_our_host("[::1]:9836", {}));
  EXPECT_TRUE(is_our_host("10.1.2.3", {}));
  EXPECT_TRUE(is_our_host("GPU7.lab:80", {"gpu7.lab"}));
}

}  // namespace
}  // namespace gpurota::web
