#include "swap_daemon.h"

#include "fake_wire.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpurota::interposer_test {
namespace {

constexpr int kPollMs = 2;
constexpr std::uint64_t kBlock = std::uint64_t{64} << 20;
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

void take_off(std::uint64_t* from, std::uint64_t bytes) { *from -= std::min(*from, bytes); }

}  // namespace

SwapDaemon::SwapDaemon(std::string path, std::vector<FakeGpu> gpus, SwapBehaviour behaviour)
    : path_(std::move(path)),
      gpus_(std::move(gpus)),
      behaviour_(behaviour),
      random_(behaviour.seed),
      listener_(listen_at(path_)) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) == 0) {
    wake_read_ = Fd(ends[0]);
    wake_write_ = Fd(ends[1]);
  }
  thread_ = std::thread([this] { serve(); });
}

SwapDaemon::~SwapDaemon() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_write_.reset();
  thread_.join();
  ::unlink(path_.c_str());
  for (Tenant& tenant : tenants_) {
    if (tenant.page != nullptr) ::munmap(tenant.page, GPUROTA_PAGE_BYTES);
  }
}

void SwapDaemon::set(const SwapBehaviour& behaviour) {
  std::lock_guard lock(mutex_);
  behaviour_ = behaviour;
}

std::uint64_t SwapDaemon::evictions() const {
  std::lock_guard lock(mutex_);
  return evictions_;
}

void SwapDaemon::count_work(Tenant& tenant) {
  const auto now = std::chrono::steady_clock::now();
  const double passed = std::chrono::duration<double>(now - tenant.said).count();
  if (tenant.said.time_since_epoch().count() != 0) {
    (tenant.status.busy != 0 ? busy_s_ : idle_s_) += passed;
  }
  tenant.said = now;
}

double SwapDaemon::busy_share() {
  std::lock_guard lock(mutex_);
  for (Tenant& tenant : tenants_) count_work(tenant);
  const double share = busy_s_ / std::max(busy_s_ + idle_s_, 1e-9);
  busy_s_ = idle_s_ = 0;
  return share;
}

std::uint64_t SwapDaemon::evicted_bytes() const {
  std::lock_guard lock(mutex_);
  return evicted_;
}

std::uint64_t SwapDaemon::clean_bytes() const {
  std::lock_guard lock(mutex_);
  return clean_;
}

std::uint64_t SwapDaemon::refused_for_rdma() const {
  std::lock_guard lock(mutex_);
  return refused_for_rdma_;
}

std::uint64_t SwapDaemon::let_through() const {
  std::lock_guard lock(mutex_);
  return let_through_;
}

std::string SwapDaemon::bad() const {
  std::lock_guard lock(mutex_);
  return bad_;
}

gpurota_swap_memory SwapDaemon::memory(int slot) const {
  std::lock_guard lock(mutex_);
  gpurota_swap_memory sum{};
  for (const Tenant& tenant : tenants_) {
    if (!tenant.here) continue;
    const gpurota_swap_memory& memory = tenant.gpus[static_cast<std::size_t>(slot)].memory;
    sum.movable_bytes += memory.movable_bytes;
    sum.resident_bytes += memory.resident_bytes;
    sum.wired_bytes += memory.wired_bytes;
  }
  return sum;
}

bool SwapDaemon::wait(const std::function<bool()>& done) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(30), done);
}

bool SwapDaemon::wait_for_evictions(std::uint64_t count) const {
  return wait([=, this] { return evictions_ >= count; });
}

bool SwapDaemon::wait_for_clean_bytes(std::uint64_t bytes) const {
  return wait([=, this] { return clean_ >= bytes; });
}

bool SwapDaemon::wait_for_returns(std::uint64_t count) const {
  return wait([=, this] { return returned_ >= count; });
}

bool SwapDaemon::wait_for_refusals(std::uint64_t count) const {
  return wait([=, this] { return refused_for_rdma_ >= count; });
}

bool SwapDaemon::wait_for_memory(int slot, std::uint64_t movable, std::uint64_t wired) const {
  return wait([=, this] {
    std::uint64_t has = 0;
    std::uint64_t has_wired = 0;
    for (const Tenant& tenant : tenants_) {
      if (!tenant.here) continue;
      has += tenant.gpus[static_cast<std::size_t>(slot)].memory.movable_bytes;
      has_wired += tenant.gpus[static_cast<std::size_t>(slot)].memory.wired_bytes;
    }
    return has == movable && has_wired == wired;
  });
}

bool SwapDaemon::wait_for_waiting_submission() const {
  return wait([this] {
    return std::ranges::any_of(tenants_, [](const Tenant& t) { return t.status.waiting > 0; });
  });
}

bool SwapDaemon::wait_for_grant_while_away() const {
  return wait([this] { return granted_while_away_ > 0; });
}

bool SwapDaemon::wait_for_question() const {
  return wait([this] {
    return std::ranges::any_of(tenants_, [](const Tenant& t) { return !t.questions.empty(); });
  });
}

bool SwapDaemon::wait_for_resident(int slot, std::uint64_t bytes) const {
  return wait([=, this] {
    std::uint64_t here = 0;
    for (const Tenant& tenant : tenants_) {
      if (tenant.here) here += tenant.gpus[static_cast<std::size_t>(slot)].memory.resident_bytes;
    }
    return here == bytes;
  });
}

void SwapDaemon::wrong(const std::string& what) { bad_ += what + "\n"; }

void SwapDaemon::serve() {
  for (;;) {
    std::vector<pollfd> polled = {{wake_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (Tenant& t : tenants_) {
      polled.push_back({t.call.get(), POLLIN, 0});
      polled.push_back({t.event ? t.event.get() : -1, POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), kPollMs);
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    std::size_t i = 2;
    for (auto t = tenants_.begin(); t != tenants_.end(); i += 2) {
      const bool stays =
          (polled[i].revents == 0 || on_call(*t)) && (polled[i + 1].revents == 0 || on_event(*t));
      if (stays && t->here) step(*t);
      if (!stays && t->page != nullptr) ::munmap(t->page, GPUROTA_PAGE_BYTES);
      t = stays ? std::next(t) : tenants_.erase(t);
    }
    if (polled[1].revents != 0) accept_tenant();
    changed_.notify_all();
  }
}

void SwapDaemon::accept_tenant() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return;
  tenants_.emplace_back();
  tenants_.back().call = std::move(fd);
  tenants_.back().gpus.resize(gpus_.size());
}

bool SwapDaemon::on_call(Tenant& tenant) {
  alignas(8) unsigned char packet[GPUROTA_WIRE_MAX];
  const long size = ::recv(tenant.call.get(), packet, sizeof(packet), MSG_DONTWAIT);
  gpurota_msg_header header{};
  if (size <= 0 || !parse(packet, size, &header)) return false;
  gpurota_msg_hello hello_message;
  gpurota_msg_query query;
  gpurota_msg_processes processes;
  if (header.type == GPUROTA_MSG_HELLO && parse(packet, size, &hello_message)) {
    return hello(tenant, hello_message);
  }
  const bool asks = header.type == GPUROTA_MSG_QUERY || header.type == GPUROTA_MSG_CONTEXTS;
  if (asks && parse(packet, size, &query)) {
    // Messages that the tenant sent on the event socket before the question are handled first.
    return (!tenant.event || on_event(tenant)) && info(tenant, query.slot, header.seq);
  }
  if (header.type == GPUROTA_MSG_PROCESSES && parse(packet, size, &processes)) {
    processes.header.type = GPUROTA_MSG_MEMBERS;
    return send_plain(tenant.call, processes);
  }
  gpurota_msg_holding held;
  if (header.type == GPUROTA_MSG_HOLDING && parse(packet, size, &held)) {
    return holding(tenant, held);
  }
  gpurota_msg_open question;
  if (header.type == GPUROTA_MSG_OPEN && parse(packet, size, &question)) {
    return open(tenant, question);
  }
  wrong("message " + std::to_string(header.type) + " on the call socket");
  return false;
}

// All tenants belong to one lease, so the memory of each is already counted.
bool SwapDaemon::holding(const Tenant& tenant, const gpurota_msg_holding& message) {
  if (message.kind == GPUROTA_HOLDING_END) {
    shared_.erase(message.key);
    return true;
  }
  gpurota_msg_counted answer{};
  answer.header = {GPUROTA_MSG_COUNTED, sizeof(answer), message.header.seq};
  answer.slot = message.slot;
  if (message.kind == GPUROTA_HOLDING_MINE) shared_[message.key] = message.bytes;
  const auto found = shared_.find(message.key);
  answer.status = found != shared_.end() ? GPUROTA_OK : GPUROTA_REFUSED_LIMIT;
  if (found != shared_.end()) answer.bytes = found->second;
  return send_plain(tenant.call, answer);
}

bool SwapDaemon::hello(Tenant& tenant, const gpurota_msg_hello& message) {
  if ((message.features & GPUROTA_FEATURE_SWAP) == 0) wrong("a HELLO that cannot swap");
  gpurota_msg_welcome answer{};
  answer.header = {GPUROTA_MSG_WELCOME, sizeof(answer), message.header.seq};
  answer.version = GPUROTA_WIRE_VERSION;
  answer.features = GPUROTA_FEATURE_PROCESSES | GPUROTA_FEATURE_SWAP | GPUROTA_FEATURE_OPEN |
                    GPUROTA_FEATURE_HOLDING;
  Fd page_fd;
  tenant.page = make_page(gpus_, &page_fd);
  int ends[2] = {-1, -1};
  if (tenant.page == nullptr ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return false;
  }
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    tenant.page->grant[i].limit_bytes = gpus_[i].limit + behaviour_.oversize;
  }
  tenant.event = Fd(ends[0]);
  const Fd theirs(ends[1]);
  return send_with_fds(tenant.call, &answer, sizeof(answer),
                       std::array{page_fd.get(), theirs.get()});
}

bool SwapDaemon::open(const Tenant& opener, gpurota_msg_open question) {
  gpurota_msg_opened answer{};
  answer.header = {GPUROTA_MSG_OPENED, sizeof(answer), question.header.seq};
  const auto owner = std::ranges::find_if(tenants_, [&](const Tenant& t) {
    return t.here && std::ranges::equal(t.key, question.name.owner);
  });
  int ends[2] = {-1, -1};
  if (owner == tenants_.end() ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    answer.status = GPUROTA_REFUSED_LEASE;
    return send_plain(opener.call, answer);
  }
  const Fd theirs(ends[0]), yours(ends[1]);
  answer.own_lease = 1;
  question.header = {GPUROTA_MSG_SWAP_OPEN, sizeof(question), 0};
  return send_with_fds(owner->event, &question, sizeof(question), std::array{theirs.get()}) &&
         send_with_fds(opener.call, &answer, sizeof(answer), std::array{yours.get()});
}

std::uint64_t SwapDaemon::charged(std::size_t slot) const {
  std::uint64_t sum = 0;
  for (const Tenant& tenant : tenants_) {
    sum += tenant.gpus[slot].memory.movable_bytes + tenant.gpus[slot].memory.wired_bytes;
  }
  return sum;
}

bool SwapDaemon::info(Tenant& tenant, std::uint32_t slot, std::uint32_t seq) {
  if (slot >= gpus_.size()) return false;
  gpurota_msg_info info{};
  info.header = {GPUROTA_MSG_INFO, sizeof(info), seq};
  info.slot = slot;
  info.limit_bytes = gpus_[slot].limit;
  info.available_bytes = info.limit_bytes - std::min(info.limit_bytes, charged(slot));
  info.limit_bytes += behaviour_.oversize;
  info.available_bytes += behaviour_.oversize - std::min(behaviour_.oversize, hosted(slot));
  return send_plain(tenant.call, info);
}

bool SwapDaemon::on_event(Tenant& tenant) {
  alignas(8) unsigned char packet[GPUROTA_WIRE_MAX];
  for (;;) {
    const long size = ::recv(tenant.event.get(), packet, sizeof(packet), MSG_DONTWAIT);
    if (size < 0) return true;
    if (size == 0 || !take(tenant, packet, size)) return false;
  }
}

bool SwapDaemon::take(Tenant& tenant, const unsigned char* packet, long size) {
  gpurota_msg_header header{};
  gpurota_msg_swap_here here_message;
  gpurota_msg_swap_grow question;
  gpurota_msg_swap_shrink shrink_message;
  gpurota_msg_swap_status status;
  gpurota_msg_swap_moved moved_message;
  if (!parse(packet, size, &header)) return false;
  if (!tenant.here && header.type != GPUROTA_MSG_SWAP_HERE) wrong("SWAP_HERE is not the first");
  if (header.type == GPUROTA_MSG_SWAP_HERE && parse(packet, size, &here_message)) {
    here(tenant, here_message);
  } else if (header.type == GPUROTA_MSG_SWAP_GROW && parse(packet, size, &question)) {
    answer(tenant, question);
  } else if (header.type == GPUROTA_MSG_SWAP_SHRINK && parse(packet, size, &shrink_message)) {
    shrink(tenant, shrink_message);
  } else if (header.type == GPUROTA_MSG_SWAP_STATUS && parse(packet, size, &status)) {
    if (status.gate_seq > tenant.gate_seq) wrong("a status of an order to come");
    count_work(tenant);
    tenant.status = status;
  } else if (header.type == GPUROTA_MSG_SWAP_MOVED && parse(packet, size, &moved_message)) {
    moved(tenant, moved_message);
  } else {
    wrong("message " + std::to_string(header.type) + " on the event socket");
    return false;
  }
  return true;
}

void SwapDaemon::here(Tenant& tenant, const gpurota_msg_swap_here& message) {
  if (tenant.here) wrong("SWAP_HERE twice");
  if (message.slots != gpus_.size()) wrong("SWAP_HERE of other slots");
  tenant.here = true;
  std::copy_n(message.key, 2, tenant.key);
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    tenant.gpus[i].memory = message.memory[i];
    tenant.gpus[i].hosted = message.hosted_bytes[i];
    if (message.hosted_bytes[i] > behaviour_.oversize) wrong("more in host memory than may be");
    if (message.memory[i].resident_bytes > message.memory[i].movable_bytes) wrong("too much here");
  }
  gpurota_msg_swap_terms terms{};
  terms.header = {GPUROTA_MSG_SWAP_TERMS, sizeof(terms), 0};
  terms.host_bytes = std::uint64_t{1} << 30;
  terms.pinned_bytes = std::uint64_t{256} << 20;
  if (random_() % 4 == 0) terms.pinned_bytes = std::uint64_t{32} << 20;  // the rest through a ring
  terms.copy_all = behaviour_.copies_all ? 1 : 0;
  send_plain(tenant.event, terms);
  tenant.phase = message.gate_open != 0 ? Phase::kOpen : Phase::kShut;
  after(tenant, 50);
}

void SwapDaemon::answer(Tenant& tenant, const gpurota_msg_swap_grow& question) {
  if (question.slot >= gpus_.size()) return wrong("a question for no slot");
  if (question.kind == GPUROTA_SWAP_HOSTED) return answer_hosted(tenant, question);
  const bool context = question.kind == GPUROTA_SWAP_CONTEXT;
  const bool waits = !context && (tenant.phase != Phase::kOpen && tenant.phase != Phase::kClosing);
  if (!behaviour_.answers || (waits && !behaviour_.takes_away)) {
    tenant.questions.push_back(question);
    return;
  }
  gpurota_msg_swap_grown grown{};
  grown.header = {GPUROTA_MSG_SWAP_GROWN, sizeof(grown), question.header.seq};
  grown.slot = question.slot;
  grown.bytes = context ? behaviour_.context_cost : question.bytes;
  const std::uint64_t after = charged(question.slot) + grown.bytes;
  if (after > gpus_[question.slot].limit) {
    const std::uint64_t over = (after - gpus_[question.slot].limit + kPage - 1) / kPage * kPage;
    const std::uint64_t part = std::min(over, question.bytes);
    const bool movable = question.kind == GPUROTA_SWAP_MOVABLE;
    const bool fits = movable && hosted(question.slot) + part <= behaviour_.oversize;
    grown.status = fits ? GPUROTA_REFUSED_TO_HOST : GPUROTA_REFUSED_LIMIT;
    grown.bytes = fits ? part : 0;
    send_plain(tenant.event, grown);
    return;
  }
  granted_while_away_ += waits ? 1 : 0;
  gpurota_swap_memory& memory = tenant.gpus[question.slot].memory;
  if (question.kind == GPUROTA_SWAP_MOVABLE) {
    memory.movable_bytes += grown.bytes;
    memory.resident_bytes += grown.bytes;
  } else {
    memory.wired_bytes += grown.bytes;
  }
  send_plain(tenant.event, grown);
}

void SwapDaemon::answer_all(Tenant& tenant) {
  const std::vector<gpurota_msg_swap_grow> questions = std::move(tenant.questions);
  tenant.questions.clear();
  for (const gpurota_msg_swap_grow& question : questions) answer(tenant, question);
}

void SwapDaemon::shrink(Tenant& tenant, const gpurota_msg_swap_shrink& message) {
  if (message.slot >= gpus_.size()) return wrong("SWAP_SHRINK of no slot");
  gpurota_swap_memory& memory = tenant.gpus[message.slot].memory;
  const std::uint64_t out = memory.movable_bytes - memory.resident_bytes;
  if (message.resident_bytes > memory.resident_bytes) wrong("freed more than was here");
  if (message.out_bytes > out) wrong("freed more than was out");
  if (message.wired_bytes > memory.wired_bytes) wrong("freed more than was wired");
  std::uint64_t& in_host = tenant.gpus[message.slot].hosted;
  if (message.hosted_bytes > in_host) wrong("freed more than was in host memory");
  take_off(&in_host, message.hosted_bytes);
  take_off(&memory.movable_bytes, message.resident_bytes + message.out_bytes);
  take_off(&memory.resident_bytes, message.resident_bytes);
  take_off(&memory.wired_bytes, message.wired_bytes);
}

void SwapDaemon::moved(Tenant& tenant, const gpurota_msg_swap_moved& message) {
  if (message.slot >= gpus_.size()) return wrong("SWAP_MOVED of no slot");
  Gpu& gpu = tenant.gpus[message.slot];
  const bool evicts = message.direction == GPUROTA_SWAP_EVICT;
  std::uint64_t& ordered = evicts ? gpu.evict : gpu.restore;
  if (ordered == 0) wrong("moved without an order");
  if (message.bytes + message.returned > ordered + kBlock) wrong("moved more than was ordered");
  if (message.failed == GPUROTA_SWAP_RDMA) {
    ++refused_for_rdma_;
  } else if (message.failed != 0) {
    wrong("a move failed");
  }
  take_off(&ordered, message.bytes + message.returned);
  if (message.returned != 0) ++returned_;
  if (evicts) {
    if (message.bytes > gpu.memory.resident_bytes) wrong("evicted more than was here");
    take_off(&gpu.memory.resident_bytes, message.bytes);
    evicted_ += message.bytes;
    const std::uint64_t clean = std::uint64_t{message.clean_pages} * GPUROTA_CLEAN_PAGE;
    if (clean > message.bytes) wrong("more is clean than was evicted");
    clean_ += clean;
  } else {
    gpu.memory.resident_bytes += message.bytes;
    if (gpu.memory.resident_bytes > gpu.memory.movable_bytes) wrong("restored more than was out");
  }
}

}  // namespace gpurota::interposer_test
