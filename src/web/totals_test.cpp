#include "web/totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

proto::Gpu a_gpu(proto::GpuState state, std::optional<Bytes> available, const char* name = "H100") {
  proto::Gpu gpu;
  gpu.state = state;
  gpu.name = name;
  gpu.memory_bytes = gib(80);
  gpu.used_bytes = gib(8);
  gpu.available_bytes = available;
  gpu.utilisation_percent = 50;
  return gpu;
}

Snapshot a_machine() {
  Snapshot snapshot;
  snapshot.info.version = "1.2";
  snapshot.status.gpus = {a_gpu(proto::GpuState::kAvailable, gib(80)),
                          a_gpu(proto::GpuState::kInUse, gib(20)),
                          a_gpu(proto::GpuState::kInUse, Bytes(), "L4 <b>"),
                          a_gpu(proto::GpuState::kHeld, gib(80)),
                          a_gpu(proto::GpuState::kDraining, std::nullopt),
                          a_gpu(proto::GpuState::kSplit, std::nullopt)};
  proto::Lease& lease = snapshot.status.leases.emplace_back();
  lease.user = "alice";
  lease.note = "secret";
  lease.command = {{"secret"}};
  snapshot.status.leases.emplace_back().user = "alice";
  snapshot.queue.requests.emplace_back().user = "bob";
  return snapshot;
}

// The valid text with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = totals_json(totals_of(a_machine(), true));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string mistake(const std::string& text) {
  const auto totals = parse_totals(text);
  return totals ? "" : totals.error().message;
}

TEST(Totals, CountEachGpuThatCanBeHadOnce) {
  const Totals totals = totals_of(a_machine(), false);
  EXPECT_EQ(totals.gpus, 5);
  EXPECT_EQ(totals.free, 1);
  EXPECT_EQ(totals.shared, 1);
  EXPECT_EQ(totals.full, 2);
  EXPECT_EQ(totals.unavailable, 1);
  EXPECT_EQ(totals.memory, gib(400));
  EXPECT_EQ(totals.available, gib(180));
  EXPECT_EQ(totals.utilisation_percent, 50);
  ASSERT_EQ(totals.models.size(), 2U);
  EXPECT_EQ(totals.models[0].gpus, 4);
  EXPECT_EQ(totals.models[0].free, 1);
}

TEST(Totals, NameUsersOnlyIfAllowedAndNothingElseAboutThem) {
  EXPECT_THAT(totals_json(totals_of(a_machine(), false)), Not(HasSubstr("alice")));
  const std::string named = totals_json(totals_of(a_machine(), true));
  EXPECT_THAT(named, HasSubstr(R"("users":["alice","bob"])"));
  EXPECT_THAT(named, Not(HasSubstr("secret")));
}

TEST(Totals, AnswerOfAMachineIsParsed) {
  const auto totals = parse_totals(totals_json(totals_of(a_machine(), true)));
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_TRUE(totals->daemon_up);
  EXPECT_EQ(totals->version, "1.2");
  EXPECT_EQ(totals->free, 1);
  EXPECT_EQ(totals->available, gib(180));
  EXPECT_EQ(totals->models[1].name, "L4 <b>");
  EXPECT_THAT(totals->users.value(), ElementsAre("alice", "bob"));
  EXPECT_EQ(totals_json(*totals), totals_json(totals_of(a_machine(), true)));
}

TEST(Totals, AMachineWithoutADaemonSaysSo) {
  const auto totals = parse_totals(totals_json(totals_of(std::nullopt, true)));
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_FALSE(totals->daemon_up);
  EXPECT_EQ(totals->gpus, 0);
}

TEST(Totals, ForeignAnswerIsRefusedWithTheReason) {
  EXPECT_THAT(mistake(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(mistake("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(mistake("<!doctype html>"), HasSubstr("not a JSON object"));
  EXPECT_THAT(mistake(std::string(60000, '[')), HasSubstr("not a JSON object"));
  EXPECT_THAT(mistake("{\"version\":\"\xff\"}"), HasSubstr("not a JSON object"));
  EXPECT_THAT(mistake(std::string(Totals::kMostBytes + 1, ' ')), HasSubstr("too long"));
  EXPECT_THAT(mistake("{}"), HasSubstr("'daemon_up'"));
  EXPECT_THAT(mistake(changed("\"free\":1", "\"free\":2")), HasSubstr("add up"));
  EXPECT_THAT(mistake(changed("\"free\":1", "\"free\":-1")), HasSubstr("'free'"));
  EXPECT_THAT(mistake(changed("\"free\":1", "\"free\":18446744073709551615")), HasSubstr("'free'"));
  EXPECT_THAT(mistake(changed("\"free\":1", "\"free\":1e9")), HasSubstr("'free'"));
  EXPECT_THAT(mistake(changed("\"free\":1", "\"free\":\"1\"")), HasSubstr("'free'"));
  EXPECT_THAT(mistake(changed("percent\":50", "percent\":101")), HasSubstr("utilisation"));
  EXPECT_THAT(mistake(changed("\"version\":\"1.2\"", "\"version\":7")), HasSubstr("'version'"));
  EXPECT_THAT(mistake(changed("[\"alice\",", "[7,")), HasSubstr("'users'"));
  EXPECT_THAT(mistake(changed("\"models\":[", "\"models\":[7,")), HasSubstr("'models'"));
}

TEST(Totals, UsersBeyondTheLimitAreLeftOut) {
  std::string many = "[\"alice\"";
  for (int i = 0; i < 2000; ++i) many += ",\"u\"";
  const auto totals = parse_totals(changed("[\"alice\"", many));
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_EQ(totals->users.value().size(), Totals::kMostUsers);
}

}  // namespace
}  // namespace gpurota::web
