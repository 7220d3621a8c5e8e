// libgpurota.so under libraries that use the driver before libgpurota is initialised, and after the
// program has ended. Trap: the constructor of libcublasLt looks up driver functions before that of
// libgpurota has run.
#include "fixture.h"

namespace gpurota::interposer_test {
namespace {

struct Loading {
  const char* name;
  const char* program;
  const char* before;  // preloaded before libgpurota
  const char* after;
  const char* argument;  // a library that the program opens
};

void PrintTo(const Loading& loading, std::ostream* out) { *out << loading.name; }

class EachLoading : public InterposerTest, public ::testing::WithParamInterface<Loading> {};

TEST_P(EachLoading, HoldsFunctionsFoundInAConstructorToTheLimit) {
  const Loading& loading = GetParam();
  auto extra = lease();
  std::string preload = foreign(PROBE_LIBRARY);
  if (*loading.before != '\0') preload = foreign(loading.before) + ":" + preload;
  if (*loading.after != '\0') preload += ":" + foreign(loading.after);
  extra["LD_PRELOAD"] = preload;
  const std::string argument = *loading.argument == '\0' ? "" : foreign(loading.argument);
  EXPECT_EQ(start(loading.program, argument, extra)->wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Interposer, EachLoading,
    ::testing::Values(Loading{"linked_before_the_driver", PROBE_EARLY_FIRST, "", "", ""},
                      Loading{"linked_after_the_driver", PROBE_EARLY_LAST, "", "", ""},
                      Loading{"preloaded_before", PROBE_EARLY, PROBE_EARLY_LIBRARY, "", ""},
                      Loading{"preloaded_after", PROBE_EARLY, "", PROBE_EARLY_LIBRARY, ""},
                      Loading{"looked_up_while_relocated", PROBE_EARLY_IFUNC, "", "", ""},
                      Loading{"opened_later", PROBE_EARLY, "", "", PROBE_EARLY_LIBRARY}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace gpurota::interposer_test
