#include "store/database.h"

#include "store/schema.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

using testing::TempDir;

Database open_memory() { return *Database::open(":memory:"); }

std::int64_t count(Database& database) {
  auto statement = *database.prepare("SELECT count(*) FROM t");
  EXPECT_TRUE(*statement.step());
  return statement.integer(0);
}

TEST(Statement, KeepsBytesExactly) {
  Database database = open_memory();
  ASSERT_TRUE(database.execute("CREATE TABLE t (a ANY, b BLOB) STRICT"));
  const std::string foreign("\xff\0\n'\x80", 5);
  auto insert = *database.prepare("INSERT INTO t VALUES (?, ?)");
  ASSERT_TRUE(insert.bind(INT64_MIN).bind_blob(foreign).run());
  ASSERT_TRUE(insert.bind(std::nullopt).bind_blob("").run()) << "a statement may be run again";
  ASSERT_TRUE(insert.bind_text(foreign).bind_blob(std::string_view()).run());
  auto select = *database.prepare("SELECT a, b FROM t ORDER BY rowid");
  ASSERT_TRUE(*select.step());
  EXPECT_EQ(select.integer(0), INT64_MIN);
  EXPECT_EQ(select.bytes(1), foreign);
  ASSERT_TRUE(*select.step());
  EXPECT_TRUE(select.is_null(0));
  EXPECT_FALSE(select.is_null(1));
  EXPECT_EQ(select.bytes(1), "");
  ASSERT_TRUE(*select.step());
  EXPECT_EQ(select.bytes(0), foreign);
  EXPECT_FALSE(*select.step());
}

TEST(Transaction, IsUndoneUnlessCommitted) {
  Database database = open_memory();
  ASSERT_TRUE(database.execute("CREATE TABLE t (a)"));
  {
    auto transaction = Transaction::begin(database);
    ASSERT_TRUE(transaction);
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES (1)"));
  }
  EXPECT_EQ(count(database), 0);
  {
    auto transaction = Transaction::begin(database);
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES (1)"));
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(count(database), 1);
}

TEST(Database, AFullDiskIsAnErrorThatLosesNothing) {
  const TempDir temp;
  auto database = Database::open(temp.file("db"));
  ASSERT_TRUE(database) << database.error().message;
  ASSERT_TRUE(
      database->execute("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(1000));"
                        "PRAGMA max_page_count = 20"));
  Result<void> last;
  std::int64_t stored = 1;
  for (int i = 0; i < 1000 && last; ++i) {
    auto transaction = Transaction::begin(*database);
    ASSERT_TRUE(transaction) << transaction.error().message;
    last = database->execute("INSERT INTO t VALUES (zeroblob(1000)), (zeroblob(100000))");
    if (last) last = transaction->commit();
    stored += last ? 2 : 0;
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Code::kIo);
  EXPECT_NE(last.error().message.find("the disk is full"), std::string::npos)
      << last.error().message;
  EXPECT_EQ(count(*database), stored);
  ASSERT_TRUE(database->execute("PRAGMA max_page_count = 10000"));
  EXPECT_TRUE(database->execute("INSERT INTO t VALUES (zeroblob(100000))")) << "and it goes on";
}

TEST(Database, IsForOneConnectionOnly) {
  const TempDir temp;
  const auto first = Database::open(temp.file("db"));
  ASSERT_TRUE(first);
  const auto second = Database::open(temp.file("db"));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another program has it open"), std::string::npos)
      << second.error().message;
}

TEST(Schema, OfANewerGpurotaIsRefused) {
  Database database = open_memory();
  ASSERT_TRUE(database.execute("PRAGMA user_version = 99"));
  const auto upgraded = upgrade_schema(database);
  ASSERT_FALSE(upgraded);
  EXPECT_EQ(upgraded.error().code, Code::kInvalid);
  EXPECT_NE(upgraded.error().message.find("newer gpurota"), std::string::npos);
  EXPECT_NE(upgraded.error().message.find("99"), std::string::npos);
}

TEST(Schema, UpgradingTwiceChangesNothing) {
  Database database = open_memory();
  ASSERT_TRUE(upgrade_schema(database));
  EXPECT_TRUE(upgrade_schema(database));
}

TEST(Schema, AStepThatFailsLeavesNothingBehind) {
  Database database = open_memory();
  ASSERT_TRUE(database.execute("CREATE TABLE lease (something_else)"));
  ASSERT_FALSE(upgrade_schema(database));
  auto statement = *database.prepare("SELECT count(*) FROM sqlite_schema");
  ASSERT_TRUE(*statement.step());
  EXPECT_EQ(statement.integer(0), 1);
}

// A database with tables of an older version, and a lease number in it.
class Upgrade : public ::testing::Test {
 protected:
  static constexpr std::size_t kOld = 5;
  Upgrade() {
    Database database = *Database::open(path_);
    EXPECT_TRUE(upgrade_schema(database, kOld));
    EXPECT_TRUE(database.execute("UPDATE sequence SET last = 42 WHERE name = 'lease'"));
  }
  static std::int64_t number(Database& database, const char* query) {
    auto statement = *database.prepare(query);
    EXPECT_TRUE(*statement.step());
    return statement.integer(0);
  }

  const TempDir temp_;
  const std::string path_ = temp_.file("gpurota.db");
  const std::string copy_ = copy_path(path_, kOld);
};

TEST_F(Upgrade, KeepsDataOfTheOlderGpurota) {
  {
    Database database = *Database::open(path_);
    ASSERT_TRUE(upgrade_schema(database));
    EXPECT_GT(number(database, "PRAGMA user_version"), std::int64_t{kOld});
  }
  Database old = *Database::open(copy_);
  EXPECT_TRUE(upgrade_schema(old, kOld)) << "the older gpurota takes it";
  EXPECT_EQ(number(old, "SELECT last FROM sequence WHERE name = 'lease'"), 42);
  struct stat info {};
  ASSERT_EQ(::stat(copy_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(Schema, LeasesAndRequestsOfAnOlderGpurotaAreNormal) {
  constexpr std::size_t kBeforeLatency = 26;
  Database database = *Database::open(":memory:");
  ASSERT_TRUE(upgrade_schema(database, kBeforeLatency));
  ASSERT_TRUE(database.execute(
      "INSERT INTO lease (id, uid, kind, token, since_ms, note, cgroup, boot_id, ending)"
      " VALUES (1, 1000, 'run', '', 0, x'', x'', '', 0)"));
  ASSERT_TRUE(upgrade_schema(database));
  auto lease = *database.prepare("SELECT latency FROM lease");
  ASSERT_TRUE(*lease.step());
  EXPECT_EQ(lease.bytes(0), "normal");
  auto request = *database.prepare(
      "SELECT dflt_value FROM pragma_table_info('request')"
      " WHERE name = 'latency'");
  ASSERT_TRUE(*request.step());
  EXPECT_EQ(request.bytes(0), "'normal'");
}

TEST_F(Upgrade, NewDatabaseKeepsNoCopy) {
  Database database = *Database::open(temp_.file("new.db"));
  ASSERT_TRUE(upgrade_schema(database));
  EXPECT_NE(::access(copy_path(temp_.file("new.db"), 0).c_str(), F_OK), 0);
}

TEST_F(Upgrade, DoesNotBeginWithoutTheCopy) {
  ASSERT_EQ(::mkdir(copy_.c_str(), 0700), 0);
  Database database = *Database::open(path_);
  const auto upgraded = upgrade_schema(database);
  ASSERT_FALSE(upgraded);
  EXPECT_NE(upgraded.error().message.find("keeping a copy"), std::string::npos)
      << upgraded.error().message;
  EXPECT_EQ(number(database, "PRAGMA user_version"), std::int64_t{kOld});
}

TEST_F(Upgrade, ErrorOfAnOlderGpurotaNamesTheCopyToUse) {
  Database database = *Database::open(path_);
  ASSERT_TRUE(upgrade_schema(database));
  const auto again = upgrade_schema(database, kOld);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find(copy_), std::string::npos) << again.error().message;
}

}  // namespace
}  // namespace gpurota::store
