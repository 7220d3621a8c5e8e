#include "store/sqlite_store.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

using ports::ProcessId;
using ports::StoredLease;
using testing::TempDir;

StoredLease make_lease(std::uint64_t id) {
  StoredLease lease;
  lease.id = LeaseId{id};
  lease.uid = 4000000000u;
  lease.kind = "run";
  lease.token = "0123456789abcdef0123456789abcdef";
  lease.since = WallTime(std::chrono::milliseconds(1700000000123));
  lease.note = std::string("caf\xc3\xa9 \xff\x00\x1b[31m", 13);
  lease.command = {"python", "", "-c", std::string("a\0b\xfe", 4), "line\nline"};
  lease.gpus = {{GpuUuid{"GPU-b"}, gib(8), std::nullopt},
                {GpuUuid{"GPU-a"}, std::nullopt, Bytes(UINT64_MAX)},
                {GpuUuid{"MIG-c"}, Bytes(0), gib(1), true, gib(12), gib(16)}};
  lease.holder = ProcessId{12, UINT64_MAX};
  lease.main = std::nullopt;
  lease.cgroup = "/sys/fs/cgroup/\xff/gpurota-L1";
  lease.containers = {{0, "/sys/fs/cgroup/docker/a b"}, {UINT32_MAX, "/sys/fs/cgroup/\xff"}};
  lease.boot_id = "11111111-2222-3333-4444-555555555555";
  lease.ending = true;
  lease.subreaper = true;
  lease.priority = -7;
  lease.quantum = std::chrono::milliseconds(0);
  lease.warning = {std::chrono::minutes(10), 10};
  lease.leaves = WallTime(std::chrono::milliseconds(1700000000789));
  lease.warned = true;
  lease.needs_driver_limit = true;
  lease.pod_uid = "1b4e-7";
  lease.kubelet_container = "/docker/a\xff";
  lease.latency = LatencyClass::kInteractive;
  lease.gpus[0].compute = {30, 50};
  lease.park = ParkState::kParked;
  lease.parked = {{4711, 123456}, {4712, 123457}};
  return lease;
}

std::vector<StoredLease> leases_of(ports::Store& store) {
  auto leases = store.load_leases();
  EXPECT_TRUE(leases) << leases.error().message;
  return leases ? *leases : std::vector<StoredLease>();
}

TEST(SqliteStore, ReadsBackExactlyTheSavedRows) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE(store) << store.error().message;
  StoredLease first = make_lease(2), second = make_lease(1);
  second.gpus.clear();
  second.command.clear();
  second.main = ProcessId{99, 5};
  second.holder.reset();
  second.ending = false;
  second.subreaper = false;
  second.needs_driver_limit = false;
  second.pod_uid.clear();
  ASSERT_TRUE((*store)->save_lease(first));
  ASSERT_TRUE((*store)->save_lease(second));
  EXPECT_EQ(leases_of(**store), (std::vector<StoredLease>{second, first}));
  first.gpus.pop_back();
  first.command = {"other"};
  first.note.clear();
  ASSERT_TRUE((*store)->save_lease(first));
  EXPECT_EQ(leases_of(**store), (std::vector<StoredLease>{second, first}));
  ASSERT_TRUE((*store)->remove_lease(second.id));
  ASSERT_TRUE((*store)->remove_lease(second.id));
  EXPECT_EQ(leases_of(**store), std::vector<StoredLease>{first});
}

TEST(SqliteStore, SurvivesAReopenAndNeverReusesAnId) {
  const TempDir temp;
  const std::string dir = temp.file("new/state");
  {
    auto store = SqliteStore::open(dir);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->next_lease_id()->value, 1u);
    EXPECT_EQ((*store)->next_lease_id()->value, 2u);
    ASSERT_TRUE((*store)->save_lease(make_lease(2)));
    ASSERT_TRUE((*store)->remove_lease(LeaseId{2}));
    ASSERT_TRUE((*store)->save_lease(make_lease(1)));
  }
  auto store = SqliteStore::open(dir);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(leases_of(**store), std::vector<StoredLease>{make_lease(1)});
  EXPECT_EQ((*store)->next_lease_id()->value, 3u);
}

TEST(SqliteStore, IsReadableByNobodyElse) {
  const TempDir temp;
  const mode_t old = ::umask(0);
  auto store = SqliteStore::open(temp.file("state"));
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->save_lease(make_lease(1)));
  ::umask(old);
  struct stat info {};
  ASSERT_EQ(::stat(temp.file("state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  for (const char* file : {"gpurota.db", "gpurota.db-wal", "state.lock"}) {
    ASSERT_EQ(::stat((temp.file("state/") + file).c_str(), &info), 0) << file;
    EXPECT_EQ(info.st_mode & 0777u, 0600u) << file;
  }
}

TEST(SqliteStore, IsUsedByOneDaemon) {
  const TempDir temp;
  const auto first = SqliteStore::open(temp.file("state"));
  ASSERT_TRUE(first);
  const auto second = SqliteStore::open(temp.file("state"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kInvalid);
  EXPECT_NE(second.error().message.find("--state-dir"), std::string::npos)
      << second.error().message;
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
}

constexpr std::uint64_t kRemoved = std::uint64_t{1} << 63;

// Writes leases until it is killed, and removes every third. Writes to `out` what is stored: a
// lease's id once the lease is stored, and the id with kRemoved once the lease is removed again.
[[noreturn]] void write_until_killed(const std::string& dir, int out) {
  auto store = SqliteStore::open(dir);
  const auto tell = [out](std::uint64_t what) {
    return ::write(out, &what, sizeof what) == sizeof what;
  };
  while (store) {
    const auto id = (*store)->next_lease_id();
    if (!id || !(*store)->save_lease(make_lease(id->value)) || !tell(id->value)) break;
    if (id->value % 3 != 0) continue;
    if (!(*store)->remove_lease(*id) || !tell(id->value | kRemoved)) break;
  }
  ::_exit(1);
}

TEST(SqliteStore, KillWhileWritingLosesNoStoredLease) {
  const TempDir temp;
  std::set<std::uint64_t> told;
  std::uint64_t last_id = 0;
  for (std::size_t round = 1; round <= 5; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(temp.file("state"), ends[1]);
    ::close(ends[1]);
    std::uint64_t what = 0;
    const std::size_t enough = told.size() + 10 + 3 * round;
    while (::read(ends[0], &what, sizeof what) == sizeof what) {
      told.insert(what);
      if (told.size() == enough) ::kill(child, SIGKILL);
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));

    auto store = SqliteStore::open(temp.file("state"));
    ASSERT_TRUE(store) << store.error().message;
    std::set<std::uint64_t> found;
    for (const StoredLease& lease : leases_of(**store)) {
      EXPECT_EQ(lease, make_lease(lease.id.value)) << "whole or not at all";
      found.insert(lease.id.value);
    }
    for (const std::uint64_t each : told) {
      const std::uint64_t id = each & ~kRemoved;
      if (each != id) {
        EXPECT_FALSE(found.count(id)) << id;
      } else if (id % 3 != 0) {
        EXPECT_TRUE(found.count(id)) << id;
      }
      last_id = std::max(last_id, id);
    }
    EXPECT_GT((*store)->next_lease_id()->value, last_id);
  }
}

TEST(SqliteStore, AWriteThatTheSystemRefusesIsAnErrorThatLosesNothing) {
  const TempDir temp;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto store = SqliteStore::open(temp.file("state"));
    if (!store) ::_exit(2);
    const rlimit small{65536, RLIM_INFINITY};
    const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    Result<void> last;
    std::uint64_t id = 0;
    while (last && id < 10000) last = (*store)->save_lease(make_lease(++id));
    if (last || last.error().code != Code::kIo) ::_exit(3);
    const auto full = (*store)->load_leases();
    if (!full || full->size() != id - 1) ::_exit(4);
    ::setrlimit(RLIMIT_FSIZE, &large);
    if (!(*store)->save_lease(make_lease(id))) ::_exit(5);
    const auto after = (*store)->load_leases();
    ::_exit(after && after->size() == id ? 0 : 6);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
}

TEST(SqliteStore, DamagedDatabaseIsUnchangedAndReportedWithTheRemedy) {
  const TempDir temp;
  const std::string file = temp.file("state/gpurota.db");
  {
    auto store = SqliteStore::open(temp.file("state"));
    for (std::uint64_t id = 1; id < 200; ++id) ASSERT_TRUE((*store)->save_lease(make_lease(id)));
  }
  const std::string whole = testing::read_file(file);
  ASSERT_GT(whole.size(), 40000u);
  std::string holed = whole;
  holed.replace(8192, 8192, std::string(8192, '\x5a'));
  for (const std::string& damaged :
       {std::string("this is no database, and long enough to be read as one") +
            std::string(5000, 'x'),
        holed, whole.substr(0, whole.size() / 2)}) {
    testing::write_file(file, damaged);
    const auto store = SqliteStore::open(temp.file("state"));
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, Code::kIo);
    EXPECT_NE(store.error().message.find("is damaged"), std::string::npos) << store.error().message;
    EXPECT_NE(store.error().message.find("stop gpurotad, move " + file), std::string::npos);
    EXPECT_EQ(testing::read_file(file), damaged);
  }
  testing::write_file(file, whole);
  EXPECT_EQ(leases_of(**SqliteStore::open(temp.file("state"))).size(), 199u);
}

TEST(SqliteStore, ADirectoryThatOthersMayWriteToIsRefused) {
  const TempDir temp;
  ASSERT_EQ(::mkdir(temp.file("open").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(temp.file("open").c_str(), 0777), 0);
  EXPECT_EQ(SqliteStore::open(temp.file("open")).error().code, Code::kDenied);
}

}  // namespace
}  // namespace gpurota::store
