#include "wire_tenant.h"

#include "ipc/packet.h"
#include "ipc/unix_socket.h"

#include <cstdlib>
#include <cstring>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace gpurota::testing {
namespace {

constexpr int kPatienceMs = 10000;

bool readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

}  // namespace

WireTenant::WireTenant(const std::string& socket) {
  auto connected = ipc::connect_unix(socket, SOCK_SEQPACKET, std::chrono::seconds(5));
  if (connected) call_ = std::move(*connected);
}

WireTenant::~WireTenant() {
  if (page_) ::munmap(page_, GPUROTA_PAGE_BYTES);
}

template <class Message>
void WireTenant::send(int fd, gpurota_msg_type type, Message message, std::uint32_t seq) {
  message.header = {static_cast<std::uint16_t>(type), sizeof message, seq};
  (void)ipc::send_packet(fd, std::as_bytes(std::span(&message, 1)));
}

template <class Answer>
std::optional<Answer> WireTenant::receive(int fd, gpurota_msg_type type, int timeout_ms) {
  if (!readable(fd, timeout_ms)) return std::nullopt;
  std::byte buffer[GPUROTA_WIRE_MAX];
  const auto received = ipc::receive_packet(fd, buffer, 0);
  if (!received || received->size < sizeof(Answer)) return std::nullopt;
  Answer answer;
  std::memcpy(&answer, buffer, sizeof answer);
  if (answer.header.type != type) return std::nullopt;
  return answer;
}

std::optional<std::uint32_t> WireTenant::hello(std::uint64_t lease, const std::string& token,
                                               const std::vector<gpurota_held>& held,
                                               std::uint32_t version) {
  gpurota_msg_hello hello{};
  hello.magic = GPUROTA_WIRE_MAGIC;
  hello.version = version;
  hello.lease = lease;
  std::memcpy(hello.token, token.data(), std::min(token.size(), sizeof hello.token));
  hello.held_count = static_cast<std::uint32_t>(held.size());
  std::copy(held.begin(), held.end(), hello.held);
  send(call_.get(), GPUROTA_MSG_HELLO, hello, ++seq_);
  return take_welcome();
}

std::optional<std::uint32_t> WireTenant::take_welcome() {
  if (!readable(call_.get(), kPatienceMs)) return std::nullopt;
  std::byte buffer[GPUROTA_WIRE_MAX];
  auto received = ipc::receive_packet(call_.get(), buffer, 2);
  gpurota_msg_welcome welcome;
  if (!received || received->size < sizeof welcome) return std::nullopt;
  std::memcpy(&welcome, buffer, sizeof welcome);
  if (welcome.header.type != GPUROTA_MSG_WELCOME) return std::nullopt;
  if (welcome.status != GPUROTA_OK) return welcome.status;
  if (received->fds.size() != 2) return std::nullopt;
  event_ = std::move(received->fds[1]);
  void* page = ::mmap(nullptr, GPUROTA_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                      received->fds[0].get(), 0);
  if (page == MAP_FAILED) return std::nullopt;
  page_ = static_cast<gpurota_page*>(page);
  return welcome.status;
}

std::optional<gpurota_msg_grown> WireTenant::take_grown() {
  return receive<gpurota_msg_grown>(call_.get(), GPUROTA_MSG_GROWN, kPatienceMs);
}

std::optional<gpurota_msg_info> WireTenant::take_info() {
  return receive<gpurota_msg_info>(call_.get(), GPUROTA_MSG_INFO, kPatienceMs);
}

std::optional<std::uint32_t> WireTenant::take_members() {
  const auto answer = receive<gpurota_msg_processes>(call_.get(), GPUROTA_MSG_MEMBERS, kPatienceMs);
  return answer ? std::optional(answer->count) : std::nullopt;
}

std::optional<gpurota_msg_lease> WireTenant::ask_for_lease(std::uint64_t lease,
                                                           const std::string& token) {
  gpurota_msg_automatic question{};
  question.lease = lease;
  token.copy(question.token, sizeof question.token);
  question.magic = GPUROTA_WIRE_MAGIC;
  question.version = GPUROTA_WIRE_VERSION;
  send(call_.get(), GPUROTA_MSG_AUTOMATIC, question, ++seq_);
  return receive<gpurota_msg_lease>(call_.get(), GPUROTA_MSG_LEASE, kPatienceMs);
}

std::optional<gpurota_msg_grown> WireTenant::grow(std::uint32_t slot, std::uint64_t need,
                                                  std::uint64_t want, std::uint64_t returned) {
  gpurota_msg_grow question{};
  question.slot = slot;
  question.need_bytes = need;
  question.want_bytes = want;
  question.returned_bytes = returned;
  send(call_.get(), GPUROTA_MSG_GROW, question, ++seq_);
  auto answer = receive<gpurota_msg_grown>(call_.get(), GPUROTA_MSG_GROWN, kPatienceMs);
  if (answer && answer->status == GPUROTA_OK) last_grown_ = answer->header.seq;
  return answer;
}

std::optional<gpurota_msg_grown> WireTenant::grow_context(std::uint32_t slot) {
  gpurota_msg_grow question{};
  question.slot = slot;
  question.kind = GPUROTA_GROW_CONTEXT;
  send(call_.get(), GPUROTA_MSG_GROW, question, ++seq_);
  return receive<gpurota_msg_grown>(call_.get(), GPUROTA_MSG_GROWN, kPatienceMs);
}

std::optional<gpurota_msg_info> WireTenant::contexts(std::uint32_t slot, std::uint32_t count) {
  gpurota_msg_contexts question{};
  question.slot = slot;
  question.count = count;
  send(call_.get(), GPUROTA_MSG_CONTEXTS, question, ++seq_);
  return receive<gpurota_msg_info>(call_.get(), GPUROTA_MSG_INFO, kPatienceMs);
}

std::optional<gpurota_msg_info> WireTenant::query(std::uint32_t slot) {
  gpurota_msg_query question{};
  question.slot = slot;
  send(call_.get(), GPUROTA_MSG_QUERY, question, ++seq_);
  return receive<gpurota_msg_info>(call_.get(), GPUROTA_MSG_INFO, kPatienceMs);
}

void WireTenant::give_back(std::uint32_t slot, std::uint64_t bytes) {
  gpurota_msg_return message{};
  message.slot = slot;
  message.bytes = bytes;
  send(call_.get(), GPUROTA_MSG_RETURN, message, ++seq_);
}

std::optional<gpurota_msg_recall> WireTenant::next_recall() {
  return receive<gpurota_msg_recall>(event_.get(), GPUROTA_MSG_RECALL, 1000);
}

void WireTenant::answer_recall(const gpurota_msg_recall& recall, std::uint64_t bytes) {
  gpurota_msg_return message{};
  message.slot = recall.slot;
  message.grown_seq = last_grown_;
  message.bytes = bytes;
  send(event_.get(), GPUROTA_MSG_RETURN, message, recall.header.seq);
}

void WireTenant::send_raw(const std::vector<std::uint8_t>& packet) {
  (void)ipc::send_packet(call_.get(), std::as_bytes(std::span(packet)));
}

bool WireTenant::hung_up() {
  std::byte buffer[GPUROTA_WIRE_MAX];
  while (readable(call_.get(), 2000)) {
    const auto received = ipc::receive_packet(call_.get(), buffer, 0);
    if (!received || received->state == ipc::IoState::kClosed) return true;
  }
  return false;
}

}  // namespace gpurota::testing
