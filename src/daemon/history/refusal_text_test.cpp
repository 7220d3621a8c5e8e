#include "daemon/history/refusal_text.h"

#include "proto/methods.h"
#include "proto/service.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

TEST(RefusalText, IsInWords) {
  EXPECT_EQ(refusal_text("Enqueue", "LimitExceeded"),
            "a request for GPUs was refused: it is above a limit");
  EXPECT_EQ(refusal_text("grant", "LimitExceeded", 5),
            "more memory was refused 5 more times: it is above a limit");
  EXPECT_EQ(refusal_text("Cancel", "NotFound", 1),
            "cancelling a request was refused once more: what it names does not exist");
}

TEST(RefusalText, UnknownNameIsShownAsItIs) {
  EXPECT_EQ(refusal_text("Dance", "TooTired"), "Dance was refused: TooTired");
}

// A refused call is recorded if it would change something or return secrets.
TEST(RefusalText, EveryReportedCallHasWords) {
#define GPUROTA_CHECK_WORDS(M)                                                              \
  if (!proto::is_read_only(proto::M::kMethod) || proto::tells_secrets(proto::M::kMethod)) { \
    std::string_view name = proto::M::kMethod;                                              \
    name.remove_prefix(name.rfind('.') + 1);                                                \
    EXPECT_FALSE(refusal_text(name, "Denied").starts_with(name)) << name;                   \
  }
  GPUROTA_FOR_EACH_METHOD(GPUROTA_CHECK_WORDS)
#undef GPUROTA_CHECK_WORDS
}

}  // namespace
}  // namespace gpurota::daemon
