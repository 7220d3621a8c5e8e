#include "base/long_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpurota {
namespace {

Result<std::vector<std::string>> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (const char* word : words) argv.push_back(const_cast<char*>(word));
  const option known[] = {{"name", required_argument, nullptr, 1000},
                          {"help", no_argument, nullptr, 'h'},
                          {nullptr, 0, nullptr, 0}};
  std::vector<std::string> taken;
  GPUROTA_TRY(read_long_options(static_cast<int>(argv.size()), argv.data(), known, "program",
                                [&](int option, const char* value) -> Result<void> {
                                  taken.push_back(option == 'h' ? "help" : value);
                                  return {};
                                }));
  return taken;
}
std::string refusal(std::vector<const char*> words) {
  const auto taken = parse(std::move(words));
  return taken ? "none" : taken.error().message;
}

TEST(LongOptions, AreTakenInOrder) {
  EXPECT_EQ(parse({"--name", "a", "-h", "--name=b"}).value(),
            (std::vector<std::string>{"a", "help", "b"}));
}

TEST(LongOptions, RefuseByTheWordThatIsWrong) {
  EXPECT_EQ(refusal({"--nam\n"}), "there is no option --nam\xEF\xBF\xBD, see program --help");
  EXPECT_EQ(refusal({"-h", "--name"}), "--name needs a value, see program --help");
  EXPECT_EQ(refusal({"-h", "extra"}), "unexpected argument extra, see program --help");
}

}  // namespace
}  // namespace gpurota
