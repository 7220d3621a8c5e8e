// Tests of damage to the files since the last daemon: after any damage, leases are either there or
// their loss is reported.
#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

using testing::read_file;
using testing::TempDir;
using testing::write_file;

ports::StoredLease lease_of(std::uint64_t id) {
  ports::StoredLease lease;
  lease.id = LeaseId{id};
  lease.kind = "run";
  lease.note = std::string(200, 'n');
  return lease;
}

class StoreDamage : public ::testing::Test {
 protected:
  std::string dir() const { return temp_.file("state"); }
  std::string db() const { return dir() + "/gpurota.db"; }
  std::string wal() const { return db() + "-wal"; }
  std::string mark() const { return dir() + "/store.mark"; }

  // Runs a daemon that stores the leases from `from` to `to`, and is killed.
  void store_and_die(std::uint64_t from, std::uint64_t to) const {
    in_a_daemon([&](SqliteStore& store) {
      for (std::uint64_t id = from; id <= to; ++id) {
        if (!store.save_lease(lease_of(id))) ::_exit(3);
      }
    });
  }
  // Like store_and_die(), but waits until each lease is on the disk, as for a client.
  void confirm_and_die(std::uint64_t from, std::uint64_t to) const {
    in_a_daemon([&](SqliteStore& store) {
      for (std::uint64_t id = from; id <= to; ++id) {
        if (!store.save_lease(lease_of(id)) || !store.sync()) ::_exit(3);
      }
    });
  }
  void in_a_daemon(const std::function<void(SqliteStore&)>& run) const {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = SqliteStore::open(dir());
      if (!store) ::_exit(2);
      run(**store);
      ::_exit(0);  // nothing is closed
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }

  std::size_t leases() const {
    auto store = SqliteStore::open(dir());
    EXPECT_TRUE(store) << store.error().message;
    return store ? (*store)->load_leases()->size() : 0;
  }

  // Opening is refused, repeatedly, and the files stay as they were.
  void expect_refused(const std::string& word) const {
    const std::string before = contents();
    for (int i = 0; i < 2; ++i) {
      const auto store = SqliteStore::open(dir());
      ASSERT_FALSE(store) << "it started with " << (*store)->load_leases()->size() << " leases";
      EXPECT_EQ(store.error().code, Code::kIo);
      EXPECT_NE(store.error().message.find(word), std::string::npos) << store.error().message;
      EXPECT_NE(store.error().message.find("Nothing was changed"), std::string::npos);
      EXPECT_TRUE(contents() == before) << "something was changed: " << store.error().message;
    }
  }
  // A log of 0 bytes counts as no log.
  std::string contents() const {
    std::string all;
    for (const std::string& file : {db(), wal(), mark()}) {
      const bool there = std::filesystem::exists(file);
      const bool counts = there && (file != wal() || std::filesystem::file_size(file) > 0);
      if (counts) all += file + "\n" + read_file(file);
    }
    return all;
  }

  const TempDir temp_;
};

TEST_F(StoreDamage, AKilledDaemonLosesNothing) {
  store_and_die(1, 5);
  EXPECT_GT(std::filesystem::file_size(wal()), 0u);
  store_and_die(6, 9);
  EXPECT_EQ(leases(), 9u);
}

TEST_F(StoreDamage, ADaemonThatStopsLeavesNothingInTheLog) {
  store_and_die(1, 5);
  EXPECT_EQ(leases(), 5u);
  EXPECT_FALSE(std::filesystem::exists(wal()));
}

TEST_F(StoreDamage, EmptyMissingOrGarbageLogIsReported) {
  store_and_die(1, 5);
  const std::string whole = read_file(wal());
  std::string first_frame = whole, random = whole;
  first_frame[32 + 24 + 100] = static_cast<char>(first_frame[32 + 24 + 100] ^ 1);
  std::mt19937 dice(1);
  for (char& c : random) c = static_cast<char>(dice());
  for (const std::string& damaged :
       {std::string(), std::string("x"), whole.substr(0, 31), whole.substr(0, 32 + 2000),
        std::string(whole.size(), '\0'), std::string(whole.size(), '\xff'), random, first_frame}) {
    write_file(wal(), damaged);
    expect_refused("its log");
  }
  std::filesystem::remove(wal());
  expect_refused("its log");
  write_file(wal(), whole);
  EXPECT_EQ(leases(), 5u) << "put back, it is all there";
}

TEST_F(StoreDamage, LogTruncatedAfterAConfirmationIsReported) {
  confirm_and_die(1, 5);
  const std::string whole = read_file(wal());
  for (const std::size_t cut : {1u, 7u, 4096u, 4097u, 4096u + 24u, 3u * (4096u + 24u), 20000u}) {
    ASSERT_LT(cut, whole.size());
    write_file(wal(), whole.substr(0, whole.size() - cut));
    expect_refused("its log");
  }
  std::string flipped = whole;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  write_file(wal(), flipped);
  expect_refused("its log");
  write_file(wal(), whole);
  EXPECT_EQ(leases(), 5u) << "put back, it is all there";
}

TEST_F(StoreDamage, MissingMarkKeepsTheRestOfTheLog) {
  confirm_and_die(1, 5);
  const std::string whole = read_file(wal());
  write_file(wal(), whole.substr(0, whole.size() - 7));
  expect_refused("move " + mark() + " away");
  std::filesystem::remove(mark());
  EXPECT_EQ(leases(), 4u);
  EXPECT_EQ(leases(), 4u) << "and it goes on from there";
}

TEST_F(StoreDamage, UnconfirmedChangesMayBeLost) {
  in_a_daemon([](SqliteStore& store) {
    if (!store.save_lease(lease_of(1)) || !store.sync() || !store.save_lease(lease_of(2)))
      ::_exit(3);
  });
  const std::string whole = read_file(wal());
  write_file(wal(), whole.substr(0, whole.size() - 7));
  EXPECT_EQ(leases(), 1u);
}

TEST_F(StoreDamage, NextDaemonFindsAllLeasesHoweverTheLastOneEnded) {
  std::mt19937 dice(1);
  std::uint64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    const auto seed = dice();
    const std::uint64_t first = last;
    const bool in_order = dice() % 3 == 0;
    const auto use = [&](SqliteStore& store) {
      std::mt19937 local(seed);
      for (std::uint64_t id = first + 1; id <= first + 6; ++id) {
        if (!store.save_lease(lease_of(id))) ::_exit(3);
        if (local() % 2 == 0 && !store.sync()) ::_exit(4);
        if (local() % 4 == 0 && !store.settle()) ::_exit(5);
      }
    };
    last += 6;
    if (in_order) {
      auto store = SqliteStore::open(dir());
      ASSERT_TRUE(store) << store.error().message;
      use(**store);
    } else {
      in_a_daemon(use);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(leases(), last);
}

TEST_F(StoreDamage, CheckpointedChangesSurviveWithoutTheLog) {
  in_a_daemon([](SqliteStore& store) {
    if (!store.save_lease(lease_of(1)) || !store.settle() || !store.settle()) ::_exit(4);
    if (!store.save_lease(lease_of(2))) ::_exit(5);
  });
  std::filesystem::remove(wal());
  expect_refused("its log");
  std::filesystem::remove(mark());  // as the message says
  EXPECT_EQ(leases(), 1u);
  EXPECT_EQ(leases(), 1u) << "and it goes on from there";
}

TEST_F(StoreDamage, EmptyOrMissingDatabaseIsReported) {
  store_and_die(1, 5);
  EXPECT_EQ(leases(), 5u);
  const std::string whole = read_file(db());
  write_file(db(), "");
  expect_refused("is empty");
  std::filesystem::remove(db());
  expect_refused("is not there");
  write_file(db(), whole);
  EXPECT_EQ(leases(), 5u);
  write_file(db(), "");
  std::filesystem::remove(mark());  // as the message says
  EXPECT_EQ(leases(), 0u);
}

TEST_F(StoreDamage, TruncatedZeroedOrGarbageDatabaseIsReported) {
  store_and_die(1, 300);
  EXPECT_EQ(leases(), 300u);
  const std::string whole = read_file(db());
  std::string random = whole;
  std::mt19937 dice(1);
  for (char& c : random) c = static_cast<char>(dice());
  for (const std::string& damaged :
       {whole.substr(0, 512), whole.substr(0, 4096), whole.substr(0, whole.size() / 2),
        std::string(whole.size(), '\0'), random}) {
    write_file(db(), damaged);
    expect_refused("is damaged");
  }
}

TEST_F(StoreDamage, DatabaseShorterThanAPageIsReportedAndNotOverwritten) {
  store_and_die(1, 2);
  EXPECT_EQ(leases(), 2u);
  const std::string whole = read_file(db());
  for (const std::size_t size : {1u, 99u, 511u}) {
    write_file(db(), whole.substr(0, size));
    expect_refused("is cut short");
  }
  std::filesystem::remove(mark());
  expect_refused("is cut short");
}

TEST_F(StoreDamage, OlderCopyIsReported) {
  store_and_die(1, 2);
  EXPECT_EQ(leases(), 2u);
  const std::string old = read_file(db());
  store_and_die(3, 4);
  EXPECT_EQ(leases(), 4u);
  write_file(db(), old);
  expect_refused("an older copy");
}

TEST_F(StoreDamage, JobFoldersOrLogRevealALostDatabaseWithoutAMark) {
  store_and_die(1, 2);
  const std::string log = read_file(wal());
  EXPECT_EQ(leases(), 2u);
  std::filesystem::remove(mark());  // as an older gpurota, which leaves no mark
  std::filesystem::create_directories(dir() + "/jobs/J1");
  write_file(db(), "");
  expect_refused("/jobs");
  std::filesystem::remove_all(dir() + "/jobs");
  write_file(wal(), log);
  expect_refused("-wal");
}

TEST_F(StoreDamage, NewStateDirectoryIsNotDamaged) {
  std::filesystem::create_directories(dir());
  std::filesystem::permissions(dir(), std::filesystem::perms::owner_all);
  std::filesystem::create_directories(dir() + "/jobs");
  write_file(db(), "");
  EXPECT_EQ(leases(), 0u);
  EXPECT_TRUE(std::filesystem::exists(mark()));
}

TEST_F(StoreDamage, DatabaseWithoutAMarkIsAccepted) {
  store_and_die(1, 5);
  std::filesystem::remove(mark());
  EXPECT_EQ(leases(), 5u);
  EXPECT_TRUE(std::filesystem::exists(mark()));
}

TEST_F(StoreDamage, GarbageMarkRevealsALostDatabase) {
  store_and_die(1, 5);
  EXPECT_EQ(leases(), 5u);
  write_file(mark(), "garbage");
  EXPECT_EQ(leases(), 5u);
  write_file(mark(), "");
  write_file(db(), "");
  expect_refused("is empty");
}

}  // namespace
}  // namespace gpurota::store
