#include "cli/args/whose.h"

#include "base/text.h"
#include "cli/site/account_names.h"

#include <algorithm>
#include <set>

#include <unistd.h>

namespace gpurota::cli {

Result<Whose> whose_of(const Raw& raw) {
  if (!raw.me || !raw.user) return Whose{raw.me, raw.user};
  return fail(Code::kInvalid, "--me and --user both say of whom: give one of them");
}

Result<std::optional<uid_t>> uid_of(const Whose& whose) {
  if (whose.me) return std::optional(::geteuid());
  return uid_of(whose.user);
}

std::string has_text(const Whose& whose) {
  return whose.user ? display_text(*whose.user, 32) + " has" : "you have";
}

void keep_only(proto::Status::Reply& reply, uid_t uid) {
  std::erase_if(reply.leases, [uid](const proto::Lease& lease) { return lease.uid != uid; });
  std::set<std::string> gpus;  // of these leases
  for (const proto::Lease& lease : reply.leases) {
    for (const proto::LeaseGpu& gpu : lease.gpus) gpus.insert(gpu.uuid.value);
  }
  std::erase_if(reply.findings, [&](const proto::Finding& finding) {
    return finding.uid != uid && !gpus.contains(finding.gpu_uuid.value);
  });
  for (const proto::Finding& finding : reply.findings) gpus.insert(finding.gpu_uuid.value);
  if (reply.bookings) {
    std::erase_if(*reply.bookings, [uid](const proto::Booking& each) { return each.uid != uid; });
    for (const proto::Booking& booking : *reply.bookings) {
      for (const GpuUuid& gpu : booking.gpu_ids) gpus.insert(gpu.value);
    }
  }
  std::erase_if(reply.gpus,
                [&gpus](const proto::Gpu& gpu) { return !gpus.contains(gpu.uuid.value); });
  reply.waiting.reset();
}

void keep_only(proto::ListRequests::Reply& reply, uid_t uid) {
  std::erase_if(reply.requests,
                [uid](const proto::Request& request) { return request.uid != uid; });
}

}  // namespace gpurota::cli
