// Feeds any bytes as a tenant's packets to the parser and the ledger behind it. The input is a
// sequence of packets, each preceded by its length; valid packets take effect as in the daemon.
#include "daemon/tenants/tenant_messages.h"
#include "lease/grant_book.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {

using namespace gpurota;

const GpuUuid kGpu{"GPU-00000000-0000-0000-0000-000000000000"};
constexpr Bytes kLimit = gib(8);

class Ledger {
 public:
  Ledger() {
    Lease lease;
    lease.id = LeaseId{1};
    lease.gpus = {LeaseGpu{kGpu, kLimit, std::nullopt}};
    book_.open(lease);
    book_.add_tenant(TenantId{1}, LeaseId{1}, {});
    book_.add_tenant(TenantId{2}, LeaseId{1}, {});
  }

  void act(TenantId who, const daemon::TenantMessage& message, TimePoint now) {
    if (const auto* m = std::get_if<gpurota_msg_grow>(&message)) {
      lease::GrowRequest request{who,
                                 m->header.seq,
                                 m->kind == GPUROTA_GROW_CONTEXT,
                                 Bytes(m->returned_bytes),
                                 Bytes(m->need_bytes),
                                 Bytes(m->want_bytes)};
      (void)book_.grow(kGpu, request, now);
    } else if (const auto* back = std::get_if<gpurota_msg_return>(&message)) {
      (void)book_.give_back(who, kGpu, Bytes(back->bytes), back->header.seq, back->grown_seq, now);
    } else if (const auto* c = std::get_if<gpurota_msg_contexts>(&message)) {
      book_.set_contexts(who, kGpu, static_cast<int>(c->count % 4096), now);
    }
    (void)book_.serve(now);
    // Whatever is sent, the grants stay within the limit.
    if (book_.find(LeaseId{1}, kGpu).if_there()->charged() > kLimit) std::abort();
  }

 private:
  lease::GrantBook book_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Ledger ledger;
  TimePoint now{};
  while (size >= 2) {
    const std::size_t length = std::min<std::size_t>(std::size_t{data[0]} * 4, size - 2);
    const TenantId who{1u + data[1] % 2};
    now += std::chrono::milliseconds(data[1]);
    const auto message = daemon::parse_tenant_message(std::as_bytes(std::span(data + 2, length)));
    if (message) ledger.act(who, *message, now);
    data += 2 + length;
    size -= 2 + length;
  }
  return 0;
}
