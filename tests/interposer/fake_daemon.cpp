#include "fake_daemon.h"

#include "fake_wire.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpurota::interposer_test {
namespace {

constexpr int kAnswerMs = 2000;

// Bytes that a newer daemon has appended to each of its messages.
std::atomic<std::size_t> g_tail{0};

template <typename Message>
bool send(const Fd& fd, const Message& message) {
  std::vector<unsigned char> packet(sizeof(message) + g_tail, 0xee);
  std::memcpy(packet.data(), &message, sizeof(message));
  return ::send(fd.get(), packet.data(), packet.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(packet.size());
}

}  // namespace

FakeDaemon::FakeDaemon(std::string path, std::vector<FakeGpu> gpus, std::uint64_t context_cost)
    : path_(std::move(path)), context_cost_(context_cost), gpus_(std::move(gpus)) {
  g_tail = 0;
  listener_ = listen_at(path_);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) == 0) {
    wake_read_ = Fd(ends[0]);
    wake_write_ = Fd(ends[1]);
  }
  thread_ = std::thread([this] { serve(); });
}

FakeDaemon::~FakeDaemon() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_write_.reset();
  thread_.join();
  ::unlink(path_.c_str());
  for (auto& [fd, tenant] : tenants_) {
    if (tenant.page != nullptr) ::munmap(tenant.page, GPUROTA_PAGE_BYTES);
  }
}

void FakeDaemon::misbehave(Mischief mischief, std::uint32_t refusal) {
  std::lock_guard lock(mutex_);
  mischief_ = mischief;
  refusal_ = refusal;
  mischief_left_ = 1;
  g_tail = mischief == Mischief::kNewerDaemon ? 96 : 0;
}

void FakeDaemon::set_limit(int slot, std::uint64_t limit) {
  std::lock_guard lock(mutex_);
  gpus_[static_cast<std::size_t>(slot)].limit = limit;
  publish();
}

void FakeDaemon::give_automatically(std::uint32_t status, const std::string& token,
                                    const std::string& visible) {
  std::lock_guard lock(mutex_);
  automatic_ = {};
  automatic_.version = GPUROTA_WIRE_VERSION;
  automatic_.status = status;
  automatic_.lease = 12;
  token.copy(automatic_.token, sizeof(automatic_.token));
  visible.copy(automatic_.visible, sizeof(automatic_.visible) - 1);
}

int FakeDaemon::asked_for_leases() const {
  std::lock_guard lock(mutex_);
  return asked_for_leases_;
}

bool FakeDaemon::answer_automatic(Tenant& tenant, const gpurota_msg_automatic& question) {
  ++asked_for_leases_;
  gpurota_msg_lease answer = automatic_;
  answer.header = {GPUROTA_MSG_LEASE, sizeof(answer), question.header.seq};
  return send(tenant.call, answer);
}

std::uint64_t FakeDaemon::recall_all(int slot) {
  {
    std::lock_guard lock(mutex_);
    ask_for_slack(slot);
  }
  wait([this] {
    return std::ranges::all_of(tenants_, [](const auto& t) { return t.second.awaited == 0; });
  });
  return granted(slot);
}

bool FakeDaemon::wait_for_hellos(std::size_t count) const {
  return wait([this, count] { return hellos_.size() >= count; });
}

bool FakeDaemon::wait(const std::function<bool()>& done) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), done);
}

void FakeDaemon::serve() {
  for (;;) {
    std::vector<pollfd> polled = {{wake_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    {
      std::lock_guard lock(mutex_);
      // Event sockets come before call sockets: memory that a tenant returns on its event socket
      // must be counted before a question on a call socket is answered.
      for (auto& [fd, t] : tenants_) {
        if (t.event) polled.push_back({t.event.get(), POLLIN, 0});
      }
      for (auto& [fd, t] : tenants_) polled.push_back({fd, POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (polled[1].revents != 0) accept_tenant();
    // Tenants that have ended are handled first, because they ended before the others asked.
    std::stable_partition(polled.begin() + 2, polled.end(),
                          [](const pollfd& p) { return (p.revents & POLLHUP) != 0; });
    for (std::size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const int fd = polled[i].fd;
      const auto found = std::ranges::find_if(
          tenants_, [&](const auto& t) { return t.first == fd || t.second.event.get() == fd; });
      if (found == tenants_.end()) continue;
      Tenant& tenant = found->second;
      const bool stays = found->first == fd ? on_call(tenant) : on_event(tenant);
      if (stays) continue;
      if (tenant.page != nullptr) ::munmap(tenant.page, GPUROTA_PAGE_BYTES);
      drop_holdings(found->first);
      tenants_.erase(found);
    }
    publish();
    changed_.notify_all();
  }
}

void FakeDaemon::accept_tenant() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return;
  const int number = fd.get();
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(number, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
    tenants_[number].pid = peer.pid;
  }
  tenants_[number].call = std::move(fd);
}

bool FakeDaemon::on_call(Tenant& tenant) {
  alignas(8) unsigned char packet[GPUROTA_WIRE_MAX];
  const long size = ::recv(tenant.call.get(), packet, sizeof(packet), MSG_DONTWAIT);
  if (size <= 0) return false;
  gpurota_msg_header header{};
  if (!parse(packet, size, &header)) return ++bad_messages_, false;
  const bool known = !tenant.granted.empty();
  gpurota_msg_hello hello_message;
  gpurota_msg_grow grow_message;
  gpurota_msg_return back;
  gpurota_msg_query query;
  gpurota_msg_contexts contexts_message;
  if (header.type == GPUROTA_MSG_HELLO && parse(packet, size, &hello_message)) {
    return hello(tenant, hello_message);
  }
  gpurota_msg_automatic automatic;
  if (!known && header.type == GPUROTA_MSG_AUTOMATIC && parse(packet, size, &automatic)) {
    return answer_automatic(tenant, automatic);
  }
  if (known && header.type == GPUROTA_MSG_GROW && parse(packet, size, &grow_message)) {
    return grow(tenant, grow_message);
  }
  if (known && header.type == GPUROTA_MSG_RETURN && parse(packet, size, &back)) {
    take_back(tenant, back);
    return true;
  }
  if (known && header.type == GPUROTA_MSG_CONTEXTS && parse(packet, size, &contexts_message)) {
    tenant.contexts[contexts_message.slot] = contexts_message.count;
    return answer_info(tenant, contexts_message.slot, contexts_message.header.seq);
  }
  gpurota_msg_holding held;
  if (known && header.type == GPUROTA_MSG_HOLDING && parse(packet, size, &held)) {
    return holding(tenant, held);
  }
  gpurota_msg_processes processes;
  if (known && header.type == GPUROTA_MSG_PROCESSES && parse(packet, size, &processes)) {
    return answer_members(tenant, processes);
  }
  if (known && header.type == GPUROTA_MSG_QUERY && parse(packet, size, &query)) {
    if (mischief_ == Mischief::kSilent) return true;
    return answer_info(tenant, query.slot, query.header.seq);
  }
  ++bad_messages_;
  return false;
}

bool FakeDaemon::answer_info(Tenant& tenant, std::uint32_t slot, std::uint32_t seq) {
  gpurota_msg_info info{};
  info.header = {GPUROTA_MSG_INFO, sizeof(info), seq};
  info.slot = slot;
  info.limit_bytes = gpus_[slot].limit;
  const std::uint64_t used = charged(static_cast<int>(slot));
  info.available_bytes = info.limit_bytes > used ? info.limit_bytes - used : 0;
  return send(tenant.call, info);
}

bool FakeDaemon::answer_members(Tenant& tenant, const gpurota_msg_processes& asked) {
  gpurota_msg_processes members{};
  members.header = {GPUROTA_MSG_MEMBERS, sizeof(members), asked.header.seq};
  for (std::uint32_t i = 0; i < asked.count; ++i) {
    const bool member =
        std::ranges::any_of(tenants_, [&](const auto& t) { return t.second.pid == asked.pid[i]; });
    if (member) members.pid[members.count++] = asked.pid[i];
  }
  return send(tenant.call, members);
}

bool FakeDaemon::on_event(Tenant& tenant) {
  alignas(8) unsigned char packet[GPUROTA_WIRE_MAX];
  const long size = ::recv(tenant.event.get(), packet, sizeof(packet), MSG_DONTWAIT);
  if (size <= 0) {
    tenant.event.reset();
    return size == 0 || errno == EAGAIN;
  }
  gpurota_msg_return back;
  if (!parse(packet, size, &back) || back.header.type != GPUROTA_MSG_RETURN) {
    ++bad_messages_;
    return false;
  }
  take_back(tenant, back);
  if (back.header.seq != 0 && back.header.seq == tenant.awaited) {
    if (back.grown_seq == tenant.last_grown) {
      tenant.awaited = 0;
    } else {
      gpurota_msg_recall again{};
      again.header = {GPUROTA_MSG_RECALL, sizeof(again), tenant.awaited};
      again.slot = back.slot;
      send(tenant.event, again);
    }
  }
  return true;
}

bool FakeDaemon::hello(Tenant& tenant, const gpurota_msg_hello& message) {
  SeenHello seen{message.lease, std::string(message.token, sizeof(message.token)), {}};
  for (std::uint32_t i = 0; i < message.held_count && i < GPUROTA_SLOTS; ++i) {
    seen.held.push_back(message.held[i]);
  }
  hellos_.push_back(seen);
  gpurota_msg_welcome answer{};
  answer.header = {GPUROTA_MSG_WELCOME, sizeof(answer), message.header.seq};
  answer.version = GPUROTA_WIRE_VERSION;
  if (mischief_ == Mischief::kNewerDaemon) answer.version = 9;
  answer.features = mischief_ == Mischief::kNewerDaemon ? ~GPUROTA_FEATURE_SWAP
                    : mischief_ == Mischief::kOldDaemon
                        ? 0
                        : GPUROTA_FEATURE_PROCESSES | GPUROTA_FEATURE_HOLDING;
  if (mischief_ == Mischief::kRefuseHello) {
    answer.status = refusal_;
    send(tenant.call, answer);
    return false;
  }
  if (mischief_ == Mischief::kForeignWelcome) return send(tenant.call, answer);
  if (mischief_ == Mischief::kGarbageWelcome) {
    const std::array<char, 700> garbage{'x'};
    return send(tenant.call, garbage);
  }
  tenant.granted.assign(gpus_.size(), 0);
  tenant.contexts.assign(gpus_.size(), 0);
  for (const gpurota_held& held : seen.held) {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (std::memcmp(held.uuid, gpus_[i].uuid.data(), GPUROTA_UUID_BYTES) != 0) continue;
      tenant.granted[i] = held.granted_bytes;
      tenant.contexts[i] = held.contexts;
    }
  }
  Fd page_fd;
  tenant.page = make_page(gpus_, &page_fd);
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  tenant.event = Fd(ends[0]);
  const Fd theirs(ends[1]);
  if (mischief_ == Mischief::kNewerDaemon) {
    tenant.page->version = 9;
    const gpurota_msg_header unheard_of{900, sizeof(unheard_of), 1};
    send(tenant.event, unheard_of);
  }
  publish();
  std::vector<unsigned char> packet(sizeof(answer) + g_tail, 0xee);
  std::memcpy(packet.data(), &answer, sizeof(answer));
  return send_with_fds(tenant.call, packet.data(), packet.size(),
                       std::array{page_fd.get(), theirs.get()});
}

bool FakeDaemon::grow(Tenant& tenant, const gpurota_msg_grow& message) {
  ++grows_;
  if (message.slot >= gpus_.size()) return ++bad_messages_, false;
  bool handled = false;
  const bool stays = mischievous_grown(tenant, message, &handled);
  return handled ? stays : answer_grow(tenant, message);
}

bool FakeDaemon::mischievous_grown(Tenant& tenant, const gpurota_msg_grow& message, bool* handled) {
  *handled = mischief_left_ > 0;
  gpurota_msg_grown answer{};
  answer.header = {GPUROTA_MSG_GROWN, sizeof(answer), message.header.seq};
  answer.slot = message.slot;
  const std::array<unsigned char, 200> garbage{0xff, 0xff, 0xff};
  if (*handled) --mischief_left_;
  switch (mischief_) {
    case Mischief::kHangUpOnGrow:
      return *handled ? false : true;
    case Mischief::kGarbageGrown:
      return *handled && send(tenant.call, garbage);
    case Mischief::kShortGrown:
      return *handled && ::send(tenant.call.get(), &answer, sizeof(answer) / 2, MSG_NOSIGNAL) > 0;
    case Mischief::kWrongSequence:
      answer.header.seq += 7;
      return *handled && send(tenant.call, answer);
    case Mischief::kHugeGrown:
      answer.granted_bytes = std::uint64_t{1} << 62;
      return *handled && send(tenant.call, answer);
    case Mischief::kSilent:
      *handled = true;
      return true;
    default:
      *handled = false;
      return true;
  }
}

bool FakeDaemon::answer_grow(Tenant& tenant, const gpurota_msg_grow& message) {
  const int slot = static_cast<int>(message.slot);
  const std::uint64_t limit = gpus_[message.slot].limit;
  std::uint64_t& granted_here = tenant.granted[message.slot];
  if (message.returned_bytes > granted_here) return ++bad_messages_, false;
  granted_here -= message.returned_bytes;
  const bool context = message.kind == GPUROTA_GROW_CONTEXT;
  const std::uint64_t need = context ? context_cost_ : message.need_bytes;
  if (need > limit || charged(slot) > limit - need) {
    ask_for_slack(slot);
    collect_answers();
  }
  const std::uint64_t used = charged(slot);
  gpurota_msg_grown answer{};
  answer.header = {GPUROTA_MSG_GROWN, sizeof(answer), message.header.seq};
  answer.slot = message.slot;
  answer.available_bytes = limit > used ? limit - used : 0;
  if (need > answer.available_bytes) {
    answer.status = GPUROTA_REFUSED_LIMIT;
  } else if (!context) {
    answer.granted_bytes =
        message.want_bytes <= answer.available_bytes / 2 ? message.want_bytes : need;
    granted_here += answer.granted_bytes;
    tenant.last_grown = message.header.seq;
  }
  return send(tenant.call, answer);
}

void FakeDaemon::take_back(Tenant& tenant, const gpurota_msg_return& message) {
  if (message.slot >= gpus_.size() || message.bytes > tenant.granted[message.slot]) {
    ++bad_messages_;
    return;
  }
  tenant.granted[message.slot] -= message.bytes;
}

bool FakeDaemon::holding(Tenant& tenant, const gpurota_msg_holding& message) {
  const auto found = shared_.find(message.key);
  std::uint64_t& granted_here = tenant.granted[message.slot];
  if (message.kind == GPUROTA_HOLDING_END) {
    if (found == shared_.end() || message.returned_bytes > granted_here) {
      return ++bad_messages_, false;
    }
    auto& holders = found->second.holders;
    const auto one = std::ranges::find(holders, tenant.call.get());
    if (one == holders.end()) return ++bad_messages_, false;
    holders.erase(one);
    if (holders.empty()) shared_.erase(found);
    granted_here -= message.returned_bytes;
    return true;
  }
  gpurota_msg_counted answer{};
  answer.header = {GPUROTA_MSG_COUNTED, sizeof(answer), message.header.seq};
  answer.slot = message.slot;
  if (message.kind == GPUROTA_HOLDING_JOIN && found == shared_.end()) {
    answer.status = GPUROTA_REFUSED_LIMIT;
    return send(tenant.call, answer);
  }
  Shared& memory = shared_[message.key];
  if (message.kind == GPUROTA_HOLDING_MINE) {
    memory.bytes = message.bytes;
    memory.slot = message.slot;
  } else {
    granted_here += memory.bytes;
  }
  memory.holders.push_back(tenant.call.get());
  answer.bytes = memory.bytes;
  return send(tenant.call, answer);
}

void FakeDaemon::drop_holdings(int call) {
  for (auto& [key, memory] : shared_) std::erase(memory.holders, call);
  std::erase_if(shared_, [](const auto& entry) { return entry.second.holders.empty(); });
}

void FakeDaemon::ask_for_slack(int slot) {
  for (auto& [fd, tenant] : tenants_) {
    if (!tenant.event || tenant.granted.empty()) continue;
    gpurota_msg_recall recall{};
    recall.header = {GPUROTA_MSG_RECALL, sizeof(recall), ++sequence_};
    recall.slot = static_cast<std::uint32_t>(slot);
    tenant.awaited = send(tenant.event, recall) ? sequence_ : 0;
  }
}

void FakeDaemon::collect_answers() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kAnswerMs);
  for (auto& [fd, tenant] : tenants_) {
    while (tenant.event && tenant.awaited != 0 && std::chrono::steady_clock::now() < deadline) {
      pollfd p{tenant.event.get(), POLLIN, 0};
      if (::poll(&p, 1, kAnswerMs) > 0) on_event(tenant);
    }
  }
}

std::uint64_t FakeDaemon::charged(int slot) const {
  std::uint64_t sum = 0;
  for (const auto& [fd, tenant] : tenants_) {
    if (tenant.granted.empty()) continue;
    sum += tenant.granted[static_cast<std::size_t>(slot)];
    sum += tenant.contexts[static_cast<std::size_t>(slot)] * context_cost_;
  }
  for (const auto& [key, memory] : shared_) {
    if (static_cast<int>(memory.slot) == slot) sum -= (memory.holders.size() - 1) * memory.bytes;
  }
  return sum;
}

void FakeDaemon::publish() {
  for (auto& [fd, tenant] : tenants_) {
    if (tenant.page == nullptr) continue;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const std::uint64_t used = charged(static_cast<int>(i));
      const std::uint64_t limit = gpus_[i].limit;
      __atomic_store_n(&tenant.page->grant[i].limit_bytes, limit, __ATOMIC_RELAXED);
      __atomic_store_n(&tenant.page->grant[i].available_bytes, limit > used ? limit - used : 0,
                       __ATOMIC_RELAXED);
    }
  }
}

}  // namespace gpurota::interposer_test
