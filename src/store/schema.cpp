#include "store/schema.h"

#include "base/fd.h"
#include "base/replace_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

// Blobs are foreign bytes (notes, arguments, paths), kept exactly. Unsigned 64-bit numbers are
// stored as the signed ones of the same bits. Times are milliseconds since 1970.
constexpr std::array kSteps = {
    R"sql(
CREATE TABLE sequence (
  name TEXT PRIMARY KEY,
  last INTEGER NOT NULL            -- the last number given; never goes back
) STRICT;
INSERT INTO sequence VALUES ('lease', 0);
CREATE TABLE lease (
  id INTEGER PRIMARY KEY,
  uid INTEGER NOT NULL,
  kind TEXT NOT NULL,
  token TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  note BLOB NOT NULL,
  holder_pid INTEGER,              -- null: there is none
  holder_start INTEGER,
  main_pid INTEGER,
  main_start INTEGER,
  cgroup BLOB NOT NULL,
  boot_id TEXT NOT NULL,           -- the boot in which the processes above are meant
  ending INTEGER NOT NULL
) STRICT;
CREATE TABLE lease_gpu (
  lease INTEGER NOT NULL REFERENCES lease ON DELETE CASCADE,
  position INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  limit_bytes INTEGER,             -- null: the whole GPU
  soft_limit_bytes INTEGER,
  PRIMARY KEY (lease, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE lease_argument (
  lease INTEGER NOT NULL REFERENCES lease ON DELETE CASCADE,
  position INTEGER NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (lease, position)
) STRICT, WITHOUT ROWID;
)sql",
    R"sql(
CREATE TABLE event (
  id INTEGER PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  lease INTEGER,
  gpu_index INTEGER,
  gpu TEXT NOT NULL,
  uid INTEGER,
  finding TEXT NOT NULL,
  bytes INTEGER,
  count INTEGER NOT NULL,
  message BLOB NOT NULL,
  pids TEXT NOT NULL,              -- 12,34
  detail BLOB NOT NULL
) STRICT;
CREATE TABLE usage (               -- what a lease had of a GPU; outlives the lease
  lease INTEGER NOT NULL,
  gpu TEXT NOT NULL,
  uid INTEGER NOT NULL,
  user_group TEXT NOT NULL,
  kind TEXT NOT NULL,
  note BLOB NOT NULL,
  since_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  open INTEGER NOT NULL,           -- 1: it goes on
  gpu_ms INTEGER NOT NULL,
  mib_ms INTEGER NOT NULL,
  PRIMARY KEY (lease, gpu)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_until ON usage (until_ms);
)sql",
    // Before this step every holder counted as a subreaper.
    "ALTER TABLE lease ADD COLUMN subreaper INTEGER NOT NULL DEFAULT 1;",
    R"sql(
ALTER TABLE lease ADD COLUMN ends_ms INTEGER;   -- null: it has no enforced end
ALTER TABLE lease ADD COLUMN as_name BLOB NOT NULL DEFAULT x'';
ALTER TABLE lease ADD COLUMN ticket TEXT NOT NULL DEFAULT '';
CREATE TABLE lease_command (
  lease INTEGER NOT NULL REFERENCES lease ON DELETE CASCADE,
  position INTEGER NOT NULL,
  holder_pid INTEGER NOT NULL,
  holder_start INTEGER NOT NULL,
  main_pid INTEGER NOT NULL,
  main_start INTEGER NOT NULL,
  cgroup BLOB NOT NULL,
  ends_ms INTEGER,
  PRIMARY KEY (lease, position)
) STRICT, WITHOUT ROWID;
INSERT INTO sequence VALUES ('request', 0);
CREATE TABLE request (
  id INTEGER PRIMARY KEY,
  uid INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ticket TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  gpus INTEGER NOT NULL,           -- how many
  memory_bytes INTEGER,            -- null, as is the percentage: whole GPUs
  memory_percent INTEGER,
  soft_bytes INTEGER,
  soft_percent INTEGER,
  lasts_ms INTEGER,
  take_over INTEGER NOT NULL,
  as_name BLOB NOT NULL,
  note BLOB NOT NULL,
  holder_pid INTEGER NOT NULL,
  holder_start INTEGER NOT NULL,
  boot_id TEXT NOT NULL
) STRICT;
CREATE TABLE request_gpu (
  request INTEGER NOT NULL REFERENCES request ON DELETE CASCADE,
  position INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  PRIMARY KEY (request, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE request_argument (
  request INTEGER NOT NULL REFERENCES request ON DELETE CASCADE,
  position INTEGER NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (request, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE gpu (
  uuid TEXT PRIMARY KEY,
  draining INTEGER NOT NULL,
  drain_reason BLOB NOT NULL,
  idle_since_ms INTEGER NOT NULL,
  last_uid INTEGER                 -- whose its last lease was; null: nobody's yet
) STRICT;
)sql",
    R"sql(
INSERT INTO sequence VALUES ('job', 0);
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  uid INTEGER NOT NULL,
  user BLOB NOT NULL,
  spec BLOB NOT NULL,              -- records of src/jobs/record.h
  state BLOB NOT NULL,
  keeper_pid INTEGER,              -- null: no run is on
  keeper_start INTEGER,
  boot_id TEXT NOT NULL            -- the boot in which the above is meant
) STRICT;
)sql",
    R"sql(
INSERT INTO sequence VALUES ('filler', 0);
CREATE TABLE filler (
  id INTEGER PRIMARY KEY,
  uid INTEGER NOT NULL,
  user BLOB NOT NULL,
  spec BLOB NOT NULL,              -- a record of src/jobs/record.h
  gpus TEXT NOT NULL,              -- UUIDs between commas; none: all
  instances INTEGER,
  memory_bytes INTEGER,            -- null, as is the percentage: whole GPUs
  memory_percent INTEGER,
  idle_ms INTEGER NOT NULL,
  grace_ms INTEGER NOT NULL,
  state TEXT NOT NULL,             -- active, paused, removed
  places TEXT NOT NULL             -- UUIDs between commas
) STRICT;
)sql",
    R"sql(
ALTER TABLE request ADD COLUMN threshold_bytes INTEGER;  -- of unreserved use; null: the site's
)sql",
    R"sql(
ALTER TABLE lease ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease_gpu ADD COLUMN swap INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN swap INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gpu ADD COLUMN capacity_bytes INTEGER;   -- null, as is the percentage: not set
ALTER TABLE gpu ADD COLUMN capacity_percent INTEGER;
ALTER TABLE gpu ADD COLUMN quantum_ms INTEGER;       -- null: not set; 0: from the cost of moving
ALTER TABLE gpu ADD COLUMN turns TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
ALTER TABLE filler ADD COLUMN evicts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE filler ADD COLUMN moved_out TEXT NOT NULL DEFAULT '';  -- UUIDs between commas
)sql",
    R"sql(
ALTER TABLE lease ADD COLUMN quantum_ms INTEGER;  -- null: as its GPUs; 0: from the cost of moving
ALTER TABLE request ADD COLUMN quantum_ms INTEGER;
)sql",
    R"sql(
ALTER TABLE lease_gpu ADD COLUMN oversize_bytes INTEGER NOT NULL DEFAULT 0;  -- in host memory
ALTER TABLE request ADD COLUMN oversize INTEGER NOT NULL DEFAULT 0;
)sql",
    R"sql(
ALTER TABLE gpu ADD COLUMN context_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gpu ADD COLUMN context_driver BLOB NOT NULL DEFAULT x'';
)sql",
    R"sql(
-- 0: never lowered
ALTER TABLE lease_gpu ADD COLUMN highest_limit_bytes INTEGER NOT NULL DEFAULT 0;
)sql",
    R"sql(
CREATE INDEX usage_user ON usage (uid, until_ms);
)sql",
    R"sql(
-- leases in this row; 0: it is of one
ALTER TABLE usage ADD COLUMN merged INTEGER NOT NULL DEFAULT 0;
-- of these, those in no other row
ALTER TABLE usage ADD COLUMN merged_first INTEGER NOT NULL DEFAULT 0;
CREATE INDEX usage_lease ON usage (uid, lease);
)sql",
    R"sql(
ALTER TABLE request ADD COLUMN gpu_type BLOB NOT NULL DEFAULT x'';
ALTER TABLE request ADD COLUMN min_memory_bytes INTEGER NOT NULL DEFAULT 0;  -- 0: any
ALTER TABLE request ADD COLUMN min_cc INTEGER NOT NULL DEFAULT 0;            -- 0: any
ALTER TABLE request ADD COLUMN near TEXT NOT NULL DEFAULT '';  -- UUIDs, a space between
)sql",
    R"sql(
ALTER TABLE lease ADD COLUMN name TEXT NOT NULL DEFAULT '';    -- what its owner calls it
ALTER TABLE request ADD COLUMN name TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
ALTER TABLE request ADD COLUMN begins_ms INTEGER;               -- of a booking; null: it waits now
ALTER TABLE request ADD COLUMN kept TEXT NOT NULL DEFAULT '';   -- for it: UUIDs, a space between
)sql",
    R"sql(
-- per cent of what is free then; null: see the memory
ALTER TABLE filler ADD COLUMN of_free INTEGER;
ALTER TABLE request ADD COLUMN gpu_class BLOB NOT NULL DEFAULT x'';
-- GPUs of that class: UUIDs, a space between
ALTER TABLE request ADD COLUMN among TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
-- its programs computed for so long
ALTER TABLE usage ADD COLUMN busy_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN idle_ms INTEGER NOT NULL DEFAULT 0;  -- of gpu_ms: none of them did
)sql",
    R"sql(
-- a user's number and a control group on each line
ALTER TABLE lease ADD COLUMN containers BLOB NOT NULL DEFAULT x'';
)sql",
    R"sql(
-- plans of others have had it wait
ALTER TABLE request ADD COLUMN blocked_ms INTEGER NOT NULL DEFAULT 0;
-- its own plan has bound everybody
ALTER TABLE request ADD COLUMN protected_ms INTEGER NOT NULL DEFAULT 0;
-- of a booking: when `kept` was chosen; null: since_ms
ALTER TABLE request ADD COLUMN placed_ms INTEGER;
-- of a booking: others leave when it begins
ALTER TABLE request ADD COLUMN on_time INTEGER NOT NULL DEFAULT 0;
-- of a booking: its owner has asked for it
ALTER TABLE request ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
-- while plans had somebody wait who would start there
ALTER TABLE gpu ADD COLUMN kept_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN booking INTEGER;  -- the number of the booking that it was; null: none
-- of such a lease: when it began; null: it has been used
ALTER TABLE lease ADD COLUMN unused_since_ms INTEGER;
)sql",
    R"sql(
CREATE TABLE past_booking (         -- one that has begun; outlives its lease by a week
  request INTEGER PRIMARY KEY,
  lease INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  gpu_millionths INTEGER NOT NULL
) STRICT;
ALTER TABLE lease ADD COLUMN warn_s INTEGER NOT NULL DEFAULT 0;  -- 0: its program is not warned
ALTER TABLE lease ADD COLUMN warn_signal INTEGER NOT NULL DEFAULT 0;
-- when it has to leave for a booking; null: not known
ALTER TABLE lease ADD COLUMN leaves_ms INTEGER;
ALTER TABLE lease ADD COLUMN warned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN warn_s INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN warn_signal INTEGER NOT NULL DEFAULT 0;
)sql",
    R"sql(
-- who, and why; empty: its owner
ALTER TABLE filler ADD COLUMN paused_by BLOB NOT NULL DEFAULT x'';
)sql",
    R"sql(
CREATE TABLE watch_age (           -- since when the watch has seen what it sees
  gpu TEXT NOT NULL,
  finding TEXT NOT NULL,
  uid INTEGER,                     -- null: nobody knows who
  lease INTEGER,
  since_ms INTEGER NOT NULL,
  pid INTEGER,                     -- of one of the processes; null: none
  start_ticks INTEGER,
  boot_id TEXT NOT NULL
) STRICT;
)sql",
    R"sql(
-- normally used, and no process's; null: never measured
ALTER TABLE gpu ADD COLUMN baseline_bytes INTEGER;
-- the boot in which it was measured
ALTER TABLE gpu ADD COLUMN baseline_boot TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
CREATE TABLE job_item (            -- an item of an array that has begun, or is not to begin
  job INTEGER NOT NULL,
  item INTEGER NOT NULL,           -- its index
  state BLOB NOT NULL,             -- a record of src/jobs/record.h
  boot_id TEXT NOT NULL,           -- the boot in which that is meant
  PRIMARY KEY (job, item)
) STRICT, WITHOUT ROWID;
)sql",
    R"sql(
-- made while the site required the driver's limit
ALTER TABLE lease ADD COLUMN needs_driver_limit INTEGER NOT NULL DEFAULT 0;
)sql",
    R"sql(
ALTER TABLE lease ADD COLUMN pod_uid TEXT NOT NULL DEFAULT '';  -- of the only pod that uses it
)sql",
    R"sql(
ALTER TABLE lease ADD COLUMN latency TEXT NOT NULL DEFAULT 'normal';  -- or interactive
ALTER TABLE request ADD COLUMN latency TEXT NOT NULL DEFAULT 'normal';
)sql",
    R"sql(
-- the control group of the container that the kubelet of its pod runs in
ALTER TABLE lease ADD COLUMN kubelet_container BLOB NOT NULL DEFAULT x'';
)sql",
    R"sql(
-- parking, parked, unparking; empty: none of these
ALTER TABLE lease ADD COLUMN park TEXT NOT NULL DEFAULT '';
-- of the processes concerned: number and start, a line each
ALTER TABLE lease ADD COLUMN parked TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
-- percent of the compute time of the GPU
ALTER TABLE lease_gpu ADD COLUMN compute INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN compute INTEGER NOT NULL DEFAULT 0;
)sql",
    R"sql(
-- the upper bound of the compute time in percent; 0: none
ALTER TABLE lease_gpu ADD COLUMN compute_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN compute_max INTEGER NOT NULL DEFAULT 0;
)sql",
};

Result<std::int64_t> read_version(Database& database) {
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database.prepare("PRAGMA user_version"));
  GPUROTA_TRY(statement.step());
  return statement.integer(0);
}

// Returns when the disk has the file.
Result<void> sync(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail_errno("cannot write " + path, errno);
  return {};
}

// Writes a copy that includes the log, whole or not at all. A copy that an earlier, failed upgrade
// left is replaced.
Result<void> write_copy(Database& database, const std::string& copy) {
  const std::string unfinished = copy + ".new";
  (void)::unlink(unfinished.c_str());
  // Made here, as SQLite would make the file readable for others.
  const Fd made(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) return fail_errno("cannot make " + unfinished, errno);
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database.prepare("VACUUM INTO ?"));
  GPUROTA_TRY(statement.bind_text(unfinished).run());
  GPUROTA_TRY(sync(unfinished));
  if (::rename(unfinished.c_str(), copy.c_str()) != 0) {
    return fail_errno("cannot make " + copy, errno);
  }
  return settle_folder_of(copy);
}

Result<void> keep_copy(Database& database, std::int64_t version) {
  if (version == 0 || database.path().front() != '/') return {};  // new, or in memory
  const std::string copy = copy_path(database.path(), version);
  if (auto written = write_copy(database, copy); !written) {
    (void)::unlink((copy + ".new").c_str());
    return tl::unexpected(
        std::move(written).error().context("while keeping a copy of the state before its upgrade"));
  }
  return {};
}

tl::unexpected<Error> too_new(const std::string& path, std::int64_t version, std::int64_t ours) {
  const std::string copy = copy_path(path, ours);
  const std::string way = ::access(copy.c_str(), F_OK) == 0
                              ? fmt::format(
                                    "put {} back, which is from before the upgrade (see "
                                    "back-up-and-recover.md)",
                                    copy)
                              : "choose another --state-dir";
  return fail(Code::kInvalid,
              fmt::format("{} was written by a newer gpurota (version {} of the tables; this one "
                          "knows up to {}): install that gpurota again, or {}",
                          path, version, ours, way));
}

}  // namespace

std::string copy_path(const std::string& database, std::int64_t version) {
  return fmt::format("{}.version-{}", database, version);
}

Result<void> upgrade_schema(Database& database, std::size_t steps) {
  const auto ours = static_cast<std::int64_t>(std::min(kSteps.size(), steps));
  GPUROTA_ASSIGN_OR_RETURN(const std::int64_t version, read_version(database));
  if (version < 0 || version > ours) return too_new(database.path(), version, ours);
  if (version == ours) return {};
  GPUROTA_TRY(keep_copy(database, version));
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database));
  for (auto step = version; step < ours; ++step) {
    GPUROTA_TRY(database.execute(kSteps[static_cast<std::size_t>(step)]));
  }
  GPUROTA_TRY(database.execute(fmt::format("PRAGMA user_version = {}", ours).c_str()));
  return transaction.commit();
}

}  // namespace gpurota::store
