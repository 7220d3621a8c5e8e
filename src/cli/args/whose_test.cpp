#include "cli/args/whose.h"

#include "cli/args/args.h"
#include "cli/status/status_samples_test.h"
#include "cli/status/status_view.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr uid_t kAlice = 1000, kBob = 1001;

std::string refusal_of(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  return arguments ? "" : arguments.error().message;
}

TEST(Whose, MeAndUserExcludeEachOther) {
  for (const char* command : {"status", "queue", "report", "events"}) {
    EXPECT_EQ(refusal_of({command, "--me"}), "");
    EXPECT_EQ(refusal_of({command, "--user", "alice"}), "");
    EXPECT_NE(refusal_of({command, "--me", "--user", "alice"}).find("give one of them"),
              std::string::npos)
        << command;
  }
  EXPECT_NE(refusal_of({"status", "--me", "--summary"}).find("leave out --me"), std::string::npos);
}

TEST(Whose, AUserIsANameOrANumber) {
  EXPECT_EQ(*uid_of(Whose{}), std::nullopt);
  EXPECT_EQ(*uid_of(Whose{true, {}}), ::geteuid());
  EXPECT_EQ(*uid_of(Whose{false, "1000"}), kAlice);
  EXPECT_EQ(*uid_of(Whose{false, "root"}), 0u);
  EXPECT_FALSE(uid_of(Whose{false, "no-such-user"}));
}

TEST(Whose, StatusOfAUserHasTheirLeasesGpusAndFindings) {
  using namespace std::chrono_literals;
  samples::Machine machine(4);
  machine.lend(1, "alice", {0}, 5min, 1, 8).uid = kAlice;
  machine.lend(2, "bob", {0}, 5min, 1, 8).uid = kBob;
  machine.lend(3, "bob", {1}, 5min, 1).uid = kBob;
  proto::Finding& stranger = machine.reply.findings.emplace_back();
  stranger.kind = proto::FindingKind::kUnreservedUse;
  stranger.gpu_uuid = machine.gpu(0).uuid;
  stranger.uid = kBob;
  proto::Finding& own = machine.reply.findings.emplace_back(stranger);
  own.gpu_uuid = machine.gpu(2).uuid;
  own.uid = kAlice;
  proto::Booking booking;
  booking.uid = kBob;
  booking.gpu_ids = {machine.gpu(3).uuid};
  machine.reply.bookings = {booking};
  machine.reply.waiting = 7;

  proto::Status::Reply alice = machine.reply;
  keep_only(alice, kAlice);
  ASSERT_EQ(alice.leases.size(), 1u);
  ASSERT_EQ(alice.gpus.size(), 2u);
  EXPECT_EQ(alice.gpus[0].index, 0);
  EXPECT_EQ(alice.gpus[1].index, 2) << "where a program of hers has no lease";
  EXPECT_EQ(alice.findings.size(), 2u) << "bob's, too, as it is on her GPU";
  EXPECT_TRUE(alice.bookings->empty());
  EXPECT_EQ(alice.waiting, std::nullopt);

  proto::Status::Reply bob = machine.reply;
  keep_only(bob, kBob);
  EXPECT_EQ(bob.leases.size(), 2u);
  EXPECT_EQ(bob.gpus.size(), 3u) << "one of them is booked";

  proto::Status::Reply nobody = machine.reply;
  keep_only(nobody, 65534);
  StatusForm form;
  form.whose.user = "carol";
  EXPECT_EQ(status_picture(nobody, "here", form, {}, samples::kNow), "carol has no GPU\n");
  form.whose = {true, {}};
  EXPECT_EQ(status_picture(nobody, "here", form, {}, samples::kNow), "you have no GPU\n");
}

TEST(Whose, QueueOfAUserKeepsItsPositions) {
  proto::ListRequests::Reply reply;
  for (const uid_t uid : {kBob, kAlice, kBob}) {
    proto::Request& request = reply.requests.emplace_back();
    request.uid = uid;
    request.position = static_cast<int>(reply.requests.size());
  }
  keep_only(reply, kAlice);
  ASSERT_EQ(reply.requests.size(), 1u);
  EXPECT_EQ(reply.requests[0].position, 2);
}

}  // namespace
}  // namespace gpurota::cli
