#include "store/sqlite_series.h"

#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

using ::testing::HasSubstr;

class SqliteSeriesTest : public ::testing::Test {
 protected:
  static SeriesRow row(int ring, std::int64_t number, std::int64_t place, std::string data) {
    return {.ring = ring, .number = number, .place = place, .data = std::move(data)};
  }
  std::vector<SeriesRow> load() {
    SqliteSeries series(path);
    const auto loaded = series.load();
    EXPECT_TRUE(loaded) << loaded.error().message;
    if (!loaded) return {};
    trouble = loaded->trouble;
    return loaded->rows;
  }
  bool exists(const std::string& file) const { return ::access(file.c_str(), F_OK) == 0; }

  testing::TempDir dir;
  const std::string path = dir.file("history.db");
  std::string trouble;
};

TEST_F(SqliteSeriesTest, KeepsRowsAndReplacesThoseOfARoundAgo) {
  {
    SqliteSeries series(path);
    ASSERT_TRUE(series.load());
    ASSERT_TRUE(series.save({row(0, 5, 5, std::string("a\0b", 3)), row(2, 7, 7, "c")}));
    ASSERT_TRUE(series.save({row(0, 905, 5, "later"), row(0, 906, 6, "d")}));
    ASSERT_TRUE(series.save({row(0, 906, 6, ""), row(2, 6, 7, "")}));
  }
  EXPECT_EQ(load(), (std::vector<SeriesRow>{row(0, 905, 5, "later"), row(2, 7, 7, "c")}));
  EXPECT_EQ(trouble, "");
}

TEST_F(SqliteSeriesTest, RenamesADamagedFileAndCreatesANewOne) {
  for (const char* content : {"no database", "SQLite format 3 but not for long"}) {
    std::ofstream(path) << std::string(5000, 'x') << content;
    EXPECT_TRUE(load().empty());
    EXPECT_THAT(trouble, HasSubstr("was damaged: a new one has been begun"));
    EXPECT_TRUE(exists(path + ".damaged"));
    SqliteSeries series(path);
    ASSERT_TRUE(series.load());
    ASSERT_TRUE(series.save({row(0, 1, 1, "a")}));
  }
  EXPECT_EQ(load().size(), 1u);
}

TEST_F(SqliteSeriesTest, RenamesAnotherDatabaseOfTheSameVersion) {
  {
    auto database = Database::open(path);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("CREATE TABLE other (a); PRAGMA user_version = 1"));
    database->accept();
  }
  EXPECT_TRUE(load().empty());
  EXPECT_THAT(trouble, HasSubstr("was damaged"));
}

// The damage must not be reported with the message for the leases' database, which would tell an
// administrator to move that database away.
TEST_F(SqliteSeriesTest, DamageOfAnOpenFileIsReportedForThatFileOnly) {
  std::vector<SeriesRow> rows;  // more than is kept in memory
  for (int i = 0; i < 2000; ++i) rows.push_back(row(0, i, i, std::string(4000, 'a')));
  {
    SqliteSeries series(path);
    ASSERT_TRUE(series.load());
    ASSERT_TRUE(series.save(rows));
  }
  SqliteSeries series(path);
  ASSERT_TRUE(series.load());
  std::fstream(path).seekp(4096) << std::string(6'000'000, '\xff');
  Result<void> saved;
  for (int i = 0; i < 2000 && saved; i += 10) saved = series.save({row(0, i + 2000, i, "b")});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message, path + " is damaged: it is moved away and a new one begun");
  const auto loaded = series.load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_THAT(loaded->trouble, HasSubstr("was damaged"));
}

TEST_F(SqliteSeriesTest, LeavesTheFileOfANewerGpurotaAlone) {
  {
    auto database = Database::open(path);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("CREATE TABLE other (a); PRAGMA user_version = 2"));
    database->accept();
  }
  SqliteSeries series(path);
  const auto loaded = series.load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("newer gpurota"));
  EXPECT_FALSE(series.save({row(0, 1, 1, "a")}));
  EXPECT_FALSE(exists(path + ".damaged"));
}

TEST_F(SqliteSeriesTest, CheckpointsItsLogRegularly) {
  SqliteSeries series(path);
  ASSERT_TRUE(series.load());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(series.save({row(0, i, i % 10, std::string(20000, 'a'))}));
    struct stat log {};
    ASSERT_EQ(::stat((path + "-wal").c_str(), &log), 0);
    EXPECT_LT(log.st_size, 2'000'000);
  }
}

}  // namespace
}  // namespace gpurota::store
