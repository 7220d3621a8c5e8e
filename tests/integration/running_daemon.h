// A daemon on its own thread, with real sockets and processes and scripted GPUs.
#pragma once

#include "client/connection.h"
#include "daemon/daemon.h"
#include "sys/sd_event_loop.h"
#include "sys/system_processes.h"
#include "testing/fake_accounts.h"
#include "testing/fake_gpu_probe.h"
#include "testing/memory_store.h"
#include "testing/temp_dir.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gpurota::testing {

class RunningDaemon {
 public:
  // One GPU of 24 GiB, unless the caller adds other GPUs to `probe` and calls start().
  explicit RunningDaemon(config::Config config = quick());
  ~RunningDaemon();

  static config::Config quick();
  void start();
  Result<void> try_start();  // returns the error of the daemon's start()
  // Stops as after a crash: the sockets are closed without a message. The store stays.
  void stop();
  // Ends as after SIGTERM: in order.
  void finish();
  // Sets the text that the next Reload reads.
  void set_config_text(std::string text);

  std::string control_socket() const { return dir_.file("control.sock"); }
  std::string tenant_socket() const { return dir_.file("tenant.sock"); }
  client::Connection connect() const;
  template <class Method>
  Result<typename Method::Reply> call(const Method& method) const {
    return connect().call(method);
  }
  // A slice for this process, held until the connection closes; aborts if it is refused.
  proto::Acquire::Reply acquire_slice(client::Connection& connection, Bytes limit) const;
  // Like acquire_slice, on a connection that outlives the daemon: a test is a tenant itself, so the
  // end of its lease would kill the test.
  proto::Acquire::Reply keep_slice(Bytes limit);
  // Bytes charged to the only GPU of the only lease.
  Bytes granted() const;

  FakeGpuProbe probe;
  const std::shared_ptr<FakeAccounts> database = std::make_shared<FakeAccounts>();
  FakeAccounts& accounts = *database;
  MemoryStore store;
  // The host memory that the kernel reports for each process; tests set this number instead of
  // using memory.
  std::atomic<std::uint64_t> host_memory{gib(1024).count()};
  // How long the next start() waits for a hanging driver.
  std::chrono::milliseconds patience{30000};

 private:
  class SharedProbe;

  TempDir dir_;
  std::vector<client::Connection> kept_;
  config::Config config_;
  std::mutex config_mutex_;
  std::string config_text_;  // guarded by config_mutex_
  std::unique_ptr<sys::SdEventLoop> loop_;
  daemon::Daemon* daemon_ = nullptr;  // used by the thread only
  std::thread thread_;
};

// A child process that ends with the test.
class Child {
 public:
  explicit Child(std::vector<std::string> argv);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  std::string read_line();
  void write_line(const std::string& line = "");
  void kill();
  // Whether the child ends within some seconds.
  bool ended();

 private:
  pid_t pid_ = -1;
  Fd input_;
  Fd output_;
};

// Calls `holds` until it returns true; false after some seconds.
bool eventually(const std::function<bool()>& holds);

}  // namespace gpurota::testing
