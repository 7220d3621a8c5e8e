// [containers] cdi: specs by which container engines give a container a lease
// (docs/design/containers.md). Each reservation has a file, which only its owner and root can read,
// as the file has the token of the reservation. One more file is for the device `any`. State thread
// only.
//
// The folder is in memory, so the loop's thread may write there itself. Therefore a reservation has
// its device before anybody is notified of the reservation. A worker finds the driver's files: at
// start, after a reload, when GPUs are found, and every kPeriod.
#pragma once

#include "access/device_rights.h"
#include "config/config.h"
#include "containers/cdi_spec.h"
#include "containers/driver_files.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_tables.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "sys/worker.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

class CdiSpecs final {
 public:
  // All must outlive the CdiSpecs.
  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    const GpuTable& gpus;
    const LeaseTables& tables;
    ports::Processes& processes;
    std::string tenant_socket;
    std::string library;      // libgpurota.so; empty: not installed
    std::string driver_root;  // the root of the driver's files; empty: the machine's
    bool root = false;        // the daemon runs as root: engines of root obey these files
  };
  static constexpr Duration kPeriod = std::chrono::minutes(1);

  explicit CdiSpecs(Parts parts) : parts_(std::move(parts)) {}

  // Call once: takes over the files that an earlier daemon left. Waits at most 5 s for the driver's
  // files.
  void start();
  // The configuration, the GPUs or names of users have changed.
  void refresh();
  void on_lease_change(const LeaseEntry& entry, bool gone);

  // The name of the lease's device, "gpurota.dev/lease=L12"; empty: the lease has none.
  std::string device_of(LeaseId lease) const;
  // For doctor: describe() says which devices there are (empty: CDI is off), and trouble() what is
  // wrong (empty: nothing).
  std::string describe() const;
  const std::string& trouble() const { return trouble_; }

 private:
  struct Facts {
    containers::DriverFiles driver;  // those that all GPUs share
    access::MigMinors minors;
    bool operator==(const Facts&) const = default;
  };
  struct Spec {
    std::string text;
    std::optional<uid_t> reader;  // nothing: everybody
  };

  static Facts read_facts(const std::string& root);
  void scan(bool wait);
  void schedule();
  void enter(const std::string& folder);
  void leave();
  void write_all();
  void write(const std::string& name, const Spec& spec);
  void remove(std::string name);  // a copy: the name may be a key that is erased
  void note(const std::string& trouble);
  bool has_device(const LeaseEntry& entry) const;
  Spec lease_spec(const LeaseEntry& entry) const;
  Spec any_spec() const;
  containers::CdiEdits edits_for(const std::set<GpuUuid>& gpus) const;

  Parts parts_;
  std::string folder_;                          // where the files are; empty: off
  std::map<std::string, std::string> written_;  // the text of each file, by its name
  Facts facts_;
  std::string trouble_;
  std::unique_ptr<sys::Worker> worker_;
  ports::EventLoop::SourcePtr timer_;
  bool scanning_ = false;
};

}  // namespace gpurota::daemon
