// [access] strict: keeps the driver's device files open to holders of leases, to the users and
// groups that the configuration names and to root, and to nobody else
// (docs/design/strict-access.md). State thread only.
//
// The original state of a file is on the disk before the file is changed (sys/device_memory.h). A
// worker scans for new files and for changes by others, periodically and when the kernel reports a
// change. Changes by others are undone. The state thread sets the access lists itself, so that a
// lease has its files before anybody is notified of it. Setting them does not block: /dev is root's
// and in memory, and the devices are not opened.
#pragma once

#include "access/device_rights.h"
#include "base/fd.h"
#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/users/users.h"
#include "daemon/watch/lease_fences.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "sys/device_files.h"
#include "sys/worker.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// The state of strict access for doctor.
struct AccessReport {
  bool strict = false;
  std::size_t files = 0;  // under strict access
  // Errors in reading or setting device files, and GPUs whose device file is unknown or missing.
  std::vector<std::string> problems;
  std::uint64_t undone = 0;                // changes by others, since strict access is on
  std::string last_undone;                 // the file, and the change
  std::string unfenced;                    // as LeaseFences::trouble()
  std::optional<mode_t> helper_mode;       // set by nvidia-modprobe, which any user can run
  std::vector<sys::DeviceOpener> openers;  // without a lease; at most a minute old
};

class StrictAccess final {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(5);
  // The delay from a change in /dev to the scan, so that a user who causes many changes does not
  // keep the worker busy.
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr Duration kOpenersPeriod = std::chrono::minutes(1);
  // The shortest time between two events about changes of the same file.
  static constexpr Duration kToldAgain = std::chrono::minutes(10);

  // All must outlive the StrictAccess.
  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    const GpuTable& gpus;
    const LeaseTables& tables;
    const Users& users;
    ports::Processes& processes;
    Recorder& recorder;
    std::string root;    // with dev and proc/driver; empty: "/"
    std::string memory;  // file of original states; empty: no device file is ever changed
  };

  explicit StrictAccess(Parts parts)
      : parts_(std::move(parts)), fences_(parts_.processes, parts_.tables) {}

  // Takes over the device files that the last daemon has changed, or restores them. Waits for the
  // disk. Call once, after the leases have been restored.
  void start();
  // Call when the configuration, the users that it names, or the GPUs have changed.
  void refresh();
  void on_lease_change(const LeaseEntry& entry, bool gone);

  // Empty: strict access is off, and nothing is left to restore.
  std::optional<AccessReport> report() const;

 private:
  struct File {
    sys::DeviceFile is;  // the last known state
    access::FileKind kind{};
    std::uint64_t set = 0;  // the number of this daemon's last change of it
    std::optional<TimePoint> told{};
  };
  // The result of a scan.
  struct Scan {
    Result<sys::DeviceFiles> files;
    sys::DeviceFiles remembered;
    access::MigMinors minors;
    std::optional<mode_t> helper_mode;
    std::optional<std::vector<sys::DeviceOpener>> openers;
    std::optional<std::string> unwritten;  // why new files could not be stored, and are left out
  };

  void turn_on();
  void turn_off();
  void scan(bool wait);
  static Scan read_scan(const std::string& root, const std::string& memory, const std::string& boot,
                        sys::DeviceFiles remembered, bool openers);
  void on_scan(Scan seen, std::uint64_t set_before);
  void take_over(const Scan& seen, std::uint64_t set_before);
  void apply();
  void fence();
  std::vector<GpuInfo> gpus() const;
  access::Who who_may(const std::map<std::string, std::set<uid_t>>& holders,
                      const std::string& name) const;
  std::map<std::string, std::set<uid_t>> holders() const;
  void set(const std::string& name, File& file, const std::string& acl);
  void note_undone(const std::string& name, File& file, const std::string& how);
  void keep_openers(std::vector<sys::DeviceOpener> openers);
  void tell_on();
  void record(proto::EventType type, std::string message, std::string detail = {});
  std::string path_of(const std::string& name) const { return parts_.root + "/dev/" + name; }
  void watch();
  void on_change();
  void schedule();

  Parts parts_;
  LeaseFences fences_;
  bool started_ = false;
  bool on_ = false;
  bool told_on_ = false;
  bool lost_memory_ = false;  // original states are unknown: files are not changed until a restart
  bool scanning_ = false;
  std::uint64_t turn_ = 0;  // counts turning on and off, to ignore results of earlier scans
  sys::DeviceFiles remembered_;
  std::map<std::string, File> files_;
  access::MigMinors minors_;
  std::uint64_t sets_ = 0;
  std::optional<std::string> trouble_;           // of the last scan, or of the file in `memory`
  std::map<std::string, std::string> problems_;  // by file
  std::uint64_t undone_ = 0;
  std::string last_undone_;
  std::optional<mode_t> helper_mode_;
  std::vector<sys::DeviceOpener> openers_;
  std::optional<TimePoint> openers_read_;
  std::unique_ptr<sys::Worker> worker_;
  Fd watched_;
  ports::EventLoop::SourcePtr watch_;
  bool changed_ = false;  // since the last scan began
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
