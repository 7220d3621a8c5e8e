// A library that has connected to the daemon, for tests of what the daemon sends to tenants.
#pragma once

#include "daemon/tenants/tenant_table.h"
#include "ipc/packet.h"
#include "testing/fake_processes.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace gpurota::daemon {

struct FakeLibrary {
  Tenant* tenant = nullptr;  // in the table
  Fd event;                  // the library's end of the event socket
  std::unique_ptr<TenantSession> session;
};

// Adds a tenant with a new process to the table. Its library understands all messages.
inline FakeLibrary connect_library(TenantTable& table, testing::FakeProcesses& processes,
                                   LeaseId lease, std::vector<GpuUuid> gpus) {
  auto tenant = std::make_unique<Tenant>();
  tenant->id = table.next_id();
  tenant->lease = lease;
  tenant->slots = std::move(gpus);
  tenant->process.id = processes.id_of(processes.spawn());
  tenant->has_latency_classes = tenant->has_windows = true;
  auto page = sys::SharedPage::make();
  EXPECT_TRUE(page);
  tenant->page.emplace(std::move(*page));
  auto ends = ipc::make_socket_pair(SOCK_SEQPACKET);
  tenant->event = std::move(ends->first);
  FakeLibrary library{nullptr, std::move(ends->second), std::make_unique<TenantSession>()};
  tenant->session = library.session.get();
  library.tenant = &table.add(std::move(tenant));
  return library;
}

}  // namespace gpurota::daemon
