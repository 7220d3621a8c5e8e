// All tenants, by number, lease and process. State thread only.
#pragma once

#include "daemon/tenants/tenant.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

// The leases of processes that are connected through libgpurota.
class TenantLeases {
 public:
  virtual ~TenantLeases() = default;
  virtual std::optional<LeaseId> lease_of(pid_t pid) const = 0;
  // The memory that this process reports as made by another process, and that is charged to this
  // process.
  virtual Bytes imported_by(pid_t pid, const GpuUuid& gpu) const = 0;
  // The memory that libgpurota reports for the process, for GPUs where the driver has no figure.
  virtual std::optional<Bytes> counted_in(pid_t pid, const GpuUuid& gpu) const = 0;
  // The processes that report memory or a context on the GPU, for GPUs where the driver has no
  // list.
  virtual std::vector<pid_t> present_on(const GpuUuid& gpu) const = 0;
};

class TenantTable final : public TenantLeases {
 public:
  TenantId next_id() { return TenantId{++last_id_}; }
  // Adds a tenant whose number, lease and process are set. The reference is valid until erase().
  Tenant& add(std::unique_ptr<Tenant> tenant);
  // Destroys the tenant.
  void erase(Tenant& tenant);
  // The tenant has died, and counts until its memory is back. False: the tenant was dead before.
  bool mark_dead(Tenant& tenant);

  // Null: no tenant has this number.
  Tenant* find(TenantId id) const;
  // In the order of their numbers.
  const std::map<TenantId, std::unique_ptr<Tenant>>& all() const { return tenants_; }
  const std::map<TenantId, Tenant*>& of_lease(LeaseId lease) const;
  std::vector<Tenant*> dead() const;

  std::optional<LeaseId> lease_of(pid_t pid) const override;
  Bytes imported_by(pid_t pid, const GpuUuid& gpu) const override;
  std::optional<Bytes> counted_in(pid_t pid, const GpuUuid& gpu) const override;
  std::vector<pid_t> present_on(const GpuUuid& gpu) const override;
  // The process's report of itself on this GPU.
  std::optional<TenantUse> use_of(pid_t pid, const GpuUuid& gpu) const;

 private:
  std::map<TenantId, std::unique_ptr<Tenant>> tenants_;
  std::map<LeaseId, std::map<TenantId, Tenant*>> of_lease_;
  std::multimap<pid_t, Tenant*> of_process_;  // the dead included
  std::set<TenantId> dead_;
  std::uint64_t last_id_ = 0;
};

}  // namespace gpurota::daemon
