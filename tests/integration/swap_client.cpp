#include "swap_client.h"

#include "abi/wire_latency.h"
#include "ipc/packet.h"
#include "ipc/unix_socket.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace gpurota::testing {
namespace {

constexpr int kPatienceMs = 20000;

bool readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

template <class Message>
std::optional<Message> read_as(const std::byte* packet, std::size_t size) {
  if (size < sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(&message, packet, sizeof message);
  return message;
}

}  // namespace

SwapClient::SwapClient(const std::string& socket) : wake_(::eventfd(0, EFD_CLOEXEC)) {
  auto connected = ipc::connect_unix(socket, SOCK_SEQPACKET, std::chrono::seconds(5));
  if (connected) call_ = std::move(*connected);
}

SwapClient::~SwapClient() {
  disconnect();
  if (page_) ::munmap(page_, GPUROTA_PAGE_BYTES);
}

void SwapClient::disconnect() {
  if (thread_.joinable()) {
    (void)::eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  call_.reset();
  event_.reset();
}

template <class Message>
void SwapClient::say(int type, Message message, std::uint32_t seq, std::span<const int> fds) {
  message.header = {static_cast<std::uint16_t>(type), sizeof message, seq};
  (void)ipc::send_packet(event_.get(), std::as_bytes(std::span(&message, 1)), fds);
}

std::optional<std::uint32_t> SwapClient::hello(std::uint64_t lease, std::uint64_t features) {
  gpurota_msg_hello hello{};
  hello.header = {GPUROTA_MSG_HELLO, sizeof hello, ++call_seq_};
  hello.magic = GPUROTA_WIRE_MAGIC;
  hello.version = GPUROTA_WIRE_VERSION;
  hello.features = features;
  hello.lease = lease;
  if (held_) hello.held[hello.held_count++] = *held_;
  (void)ipc::send_packet(call_.get(), std::as_bytes(std::span(&hello, 1)));
  if (!readable(call_.get(), kPatienceMs)) return std::nullopt;
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  auto received = ipc::receive_packet(call_.get(), buffer, 2);
  if (!received) return std::nullopt;
  const auto welcome = read_as<gpurota_msg_welcome>(buffer.data(), received->size);
  if (!welcome || welcome->status != GPUROTA_OK || received->fds.size() != 2) {
    return welcome ? std::optional(welcome->status) : std::nullopt;
  }
  features_ = welcome->features;
  event_ = std::move(received->fds[1]);
  void* page = ::mmap(nullptr, GPUROTA_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                      received->fds[0].get(), 0);
  if (page == MAP_FAILED) return std::nullopt;
  page_ = static_cast<gpurota_page*>(page);
  thread_ = std::thread([this] { run(); });
  return welcome->status;
}

void SwapClient::set_held(Bytes granted, std::uint32_t contexts) {
  held_ = gpurota_held{};  // the first GPU's UUID is all zeros
  held_->granted_bytes = granted.count();
  held_->contexts = contexts;
}

void SwapClient::here(const Has& has) {
  const std::lock_guard lock(mutex_);
  has_ = has;
  open_ = has.gate_open;
  gpurota_msg_swap_here message{};
  message.gate_open = has.gate_open ? 1 : 0;
  message.slots = 1;
  message.memory[0] = {has.movable.count(), has.resident.count(), has.wired.count()};
  message.key[0] = key_;
  say(GPUROTA_MSG_SWAP_HERE, message);
}

bool SwapClient::join(std::uint64_t lease) { return join(lease, Has()); }

bool SwapClient::join(std::uint64_t lease, const Has& has) {
  if (hello(lease) != GPUROTA_OK) return false;
  here(has);
  return true;
}

std::uint32_t SwapClient::ask(Bytes bytes, std::uint32_t kind) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t seq = ++seq_;
  answers_[seq] = std::nullopt;
  asked_[seq] = {kind, bytes};
  gpurota_msg_swap_grow question{};
  question.kind = kind;
  question.bytes = bytes.count();
  say(GPUROTA_MSG_SWAP_GROW, question, seq);
  return seq;
}

std::optional<gpurota_msg_swap_grown> SwapClient::answered(std::uint32_t seq) {
  const std::lock_guard lock(mutex_);
  return answers_[seq];
}

std::optional<std::uint32_t> SwapClient::grow(Bytes bytes, std::uint32_t kind) {
  const std::uint32_t seq = ask(bytes, kind);
  std::unique_lock lock(mutex_);
  const bool told = news_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                                   [&] { return answers_[seq].has_value() || gone_; });
  if (!told || !answers_[seq]) return std::nullopt;
  return answers_[seq]->status;
}

template <class Answer>
std::optional<Answer> SwapClient::call(int type, gpurota_msg_contexts question) {
  question.header = {static_cast<std::uint16_t>(type), sizeof question, ++call_seq_};
  (void)ipc::send_packet(call_.get(), std::as_bytes(std::span(&question, 1)));
  if (!readable(call_.get(), kPatienceMs)) return std::nullopt;
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  const auto received = ipc::receive_packet(call_.get(), buffer, 0);
  return received ? read_as<Answer>(buffer.data(), received->size) : std::nullopt;
}

std::optional<gpurota_msg_info> SwapClient::contexts(std::uint32_t count) {
  gpurota_msg_contexts question{};
  question.count = count;
  return call<gpurota_msg_info>(GPUROTA_MSG_CONTEXTS, question);
}

std::optional<gpurota_msg_info> SwapClient::query() {
  return call<gpurota_msg_info>(GPUROTA_MSG_QUERY, {});
}

void SwapClient::ask_to_open(const gpurota_shared_name& name) {
  gpurota_msg_open question{};
  question.header = {GPUROTA_MSG_OPEN, sizeof question, ++call_seq_};
  question.name = name;
  (void)ipc::send_packet(call_.get(), std::as_bytes(std::span(&question, 1)));
}

std::optional<SwapClient::Opened> SwapClient::open(const gpurota_shared_name& name) {
  ask_to_open(name);
  if (!readable(call_.get(), kPatienceMs)) return std::nullopt;
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  auto received = ipc::receive_packet(call_.get(), buffer, 1);
  if (!received) return std::nullopt;
  const auto answer = read_as<gpurota_msg_opened>(buffer.data(), received->size);
  if (!answer || answer->header.seq != call_seq_) return std::nullopt;
  Opened opened{answer->status, Fd()};
  if (!received->fds.empty()) opened.socket = std::move(received->fds[0]);
  return opened;
}

void SwapClient::set_key(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  key_ = key;
}

void SwapClient::set_busy(bool busy) {
  const std::lock_guard lock(mutex_);
  busy_ = busy;
  tell_status();
}

void SwapClient::set_rdma(bool rdma) {
  const std::lock_guard lock(mutex_);
  rdma_ = rdma;
}

void SwapClient::set_block(Bytes block) {
  const std::lock_guard lock(mutex_);
  block_ = block;
}

void SwapClient::set_lazy(bool lazy) {
  const std::lock_guard lock(mutex_);
  lazy_ = lazy;
}

bool SwapClient::gate_open() {
  const std::lock_guard lock(mutex_);
  return open_;
}
int SwapClient::turns() {
  const std::lock_guard lock(mutex_);
  return turns_;
}
int SwapClient::pages() {
  const std::lock_guard lock(mutex_);
  return pages_;
}
Bytes SwapClient::resident() {
  const std::lock_guard lock(mutex_);
  return has_.resident;
}
Bytes SwapClient::out() {
  const std::lock_guard lock(mutex_);
  return has_.movable - has_.resident;
}
std::optional<gpurota_msg_swap_terms> SwapClient::terms() {
  const std::lock_guard lock(mutex_);
  return terms_;
}
SwapClient::Has SwapClient::has() {
  const std::lock_guard lock(mutex_);
  Has now = has_;
  now.gate_open = open_;
  return now;
}

void SwapClient::send_status(std::uint32_t gate_seq) {
  gpurota_msg_swap_status status{};
  status.gate_seq = gate_seq;
  say(GPUROTA_MSG_SWAP_STATUS, status);
}

void SwapClient::send_status(std::uint32_t gate_seq, int descriptor) {
  gpurota_msg_swap_status status{};
  status.gate_seq = gate_seq;
  say(GPUROTA_MSG_SWAP_STATUS, status, 0, std::array{descriptor});
}

void SwapClient::send_moved(std::uint32_t direction, Bytes bytes, Bytes returned) {
  gpurota_msg_swap_moved moved{};
  moved.direction = direction;
  moved.bytes = bytes.count();
  moved.returned = returned.count();
  say(GPUROTA_MSG_SWAP_MOVED, moved);
}

void SwapClient::send_shrink(Bytes resident, Bytes out, Bytes wired) {
  gpurota_msg_swap_shrink shrink{};
  shrink.resident_bytes = resident.count();
  shrink.out_bytes = out.count();
  shrink.wired_bytes = wired.count();
  say(GPUROTA_MSG_SWAP_SHRINK, shrink);
}

bool SwapClient::hung_up() {
  std::unique_lock lock(mutex_);
  return news_.wait_for(lock, std::chrono::seconds(5), [&] { return gone_; });
}

void SwapClient::run() {
  std::array<std::byte, GPUROTA_WIRE_MAX> buffer;
  for (;;) {
    std::array<pollfd, 2> fds{{{event_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    (void)::poll(fds.data(), fds.size(), -1);
    if (fds[1].revents != 0) return;
    const auto received = ipc::receive_packet(event_.get(), buffer, 1);
    if (received && received->state == ipc::IoState::kWouldBlock) continue;
    if (!received || received->state == ipc::IoState::kClosed) break;
    take(buffer.data(), received->size, received->fds);
  }
  const std::lock_guard lock(mutex_);
  gone_ = true;
  news_.notify_all();
}

void SwapClient::take(const std::byte* packet, std::size_t size, const std::vector<Fd>& fds) {
  const auto header = read_as<gpurota_msg_header>(packet, size);
  if (!header) return;
  const std::lock_guard lock(mutex_);
  if (header->type == GPUROTA_MSG_SWAP_TERMS) {
    terms_ = read_as<gpurota_msg_swap_terms>(packet, size);
  } else if (header->type == GPUROTA_MSG_SWAP_GROWN) {
    const auto grown = read_as<gpurota_msg_swap_grown>(packet, size);
    const auto [kind, bytes] = asked_[header->seq];
    if (grown->status == GPUROTA_OK) {
      if (kind == GPUROTA_SWAP_MOVABLE) {
        has_.movable += Bytes(grown->bytes);
        has_.resident += Bytes(grown->bytes);
      } else {
        has_.wired += Bytes(grown->bytes);
      }
    }
    answers_[header->seq] = *grown;
  } else if (header->type == GPUROTA_MSG_SWAP_GATE) {
    gate(*read_as<gpurota_msg_swap_gate>(packet, size));
  } else if (header->type == GPUROTA_MSG_SWAP_MOVE) {
    move(*read_as<gpurota_msg_swap_move>(packet, size));
  } else if (header->type == GPUROTA_MSG_MARK) {
    ++pages_;
  } else if (header->type == GPUROTA_MSG_SWAP_OPEN && !fds.empty()) {
    const auto question = read_as<gpurota_msg_open>(packet, size);
    (void)ipc::send_packet(fds[0].get(), std::as_bytes(std::span(&question->name.address, 1)));
  }
  news_.notify_all();
}

void SwapClient::gate(const gpurota_msg_swap_gate& order) {
  gate_seq_ = order.header.seq;
  if (order.order == GPUROTA_GATE_OPEN) {
    open_ = true;
    ++turns_;
  } else if (order.order == GPUROTA_GATE_CLOSE) {
    open_ = false;
  }
  tell_status();
}

// Call this with mutex_ held. A busy client works while its gate is open, and waits while the gate
// is closed.
void SwapClient::tell_status() {
  if (lazy_ && !open_) return;
  gpurota_msg_swap_status status{};
  status.gate_seq = gate_seq_;
  status.busy = open_ && busy_ ? 1 : 0;
  status.waiting = !open_ && busy_ ? 1 : 0;
  status.ready = status.waiting;
  say(GPUROTA_MSG_SWAP_STATUS, status);
}

void SwapClient::move(const gpurota_msg_swap_move& order) {
  if (lazy_) return;
  const bool evict = order.direction == GPUROTA_SWAP_EVICT;
  const Bytes can = evict ? has_.resident : has_.movable - has_.resident;
  const Bytes bytes = std::min(can, Bytes(order.bytes));
  gpurota_msg_swap_moved moved{};
  moved.slot = order.slot;
  moved.direction = order.direction;
  if (evict && rdma_) {
    moved.failed = GPUROTA_SWAP_RDMA;
    moved.returned = order.bytes;
    return say(GPUROTA_MSG_SWAP_MOVED, moved);
  }
  for (Bytes told; evict && !block_.is_zero() && told < Bytes(order.bytes) && block_ <= can;) {
    told += block_;
    has_.resident -= block_;
    moved.bytes = block_.count();
    say(GPUROTA_MSG_SWAP_MOVED, moved);
    if (told >= Bytes(order.bytes)) return;
  }
  if (evict) {
    has_.resident -= bytes;
  } else {
    has_.resident += bytes;
  }
  moved.bytes = bytes.count();
  moved.returned = order.bytes - bytes.count();
  say(GPUROTA_MSG_SWAP_MOVED, moved);
}

}  // namespace gpurota::testing
