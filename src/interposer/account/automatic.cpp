#include "interposer/account/automatic.h"

#include "abi/wire.h"
#include "interposer/account/link.h"
#include "interposer/account/state.h"
#include "interposer/driver/driver.h"
#include "interposer/os/config.h"
#include "interposer/os/debug.h"
#include "interposer/os/elf_symbols.h"
#include "interposer/os/notice.h"
#include "interposer/os/socket.h"
#include "interposer/os/sys.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace gpurota::interposer {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES=";
constexpr const char* kOrder = "CUDA_DEVICE_ORDER=";
constexpr int64_t kAnswerMs = 5000;

// A program that was told to use no GPU needs no lease.
bool wants_none() {
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return false;
  while (*visible == ' ') ++visible;
  return *visible == '\0' || *visible == '-';
}

bool begins(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

// Sets the variables that the driver reads when it is initialised. Child processes inherit these
// variables. The new list is in memory of our own, since a library must not call the program's
// malloc. As with setenv(), the program must not read the environment in another thread meanwhile.
bool show_only(const char* gpus) {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  const size_t list_bytes = (count + 3) * sizeof(char*);
  const size_t order_bytes = strlen(kOrder) + sizeof("PCI_BUS_ID");
  const size_t visible_bytes = strlen(kVisible) + strlen(gpus) + 1;
  char* memory = static_cast<char*>(map_memory(list_bytes + order_bytes + visible_bytes, 0));
  if (memory == nullptr) return false;
  char** list = reinterpret_cast<char**>(memory);
  char* order = memory + list_bytes;
  char* visible = order + order_bytes;
  memcpy(order, kOrder, strlen(kOrder));
  memcpy(order + strlen(kOrder), "PCI_BUS_ID", sizeof("PCI_BUS_ID"));
  memcpy(visible, kVisible, strlen(kVisible));
  memcpy(visible + strlen(kVisible), gpus, strlen(gpus) + 1);
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!begins(environ[i], kVisible) && !begins(environ[i], kOrder)) list[kept++] = environ[i];
  }
  list[kept++] = order;
  list[kept++] = visible;
  list[kept] = nullptr;
  __atomic_store_n(&environ, list, __ATOMIC_RELEASE);
  return true;
}

// One attempt; false if no daemon answers.
bool ask(gpurota_msg_lease* answer) {
  const int fd = connect_to(config().socket_path);
  Socket call;
  if (fd < 0 || !adopt_socket(fd, &call)) return false;
  gpurota_msg_automatic question{};
  question.header = {GPUROTA_MSG_AUTOMATIC, sizeof(question), 1};
  question.magic = GPUROTA_WIRE_MAGIC;
  question.version = GPUROTA_WIRE_VERSION;
  question.lease = config().lease;
  memcpy(question.token, config().token, sizeof(question.token));
  question.ask = config().for_container ? GPUROTA_ASK_CONTAINER : 0;
  memcpy(question.memory, config().memory, sizeof(question.memory));
  memcpy(question.gpus, config().gpus, sizeof(question.gpus));
  memcpy(question.swap, config().swap, sizeof(question.swap));
  memcpy(question.priority, config().priority, sizeof(question.priority));
  alignas(8) unsigned char buffer[GPUROTA_WIRE_MAX];
  Descriptors unexpected;
  const int64_t deadline = now_ms() + kAnswerMs;
  long n = -1;
  if (send_packet(call, &question, sizeof(question), deadline)) {
    n = receive_packet(call, buffer, sizeof(buffer), &unexpected, deadline);
  }
  close_socket(&call);
  // An older daemon sends no reason, so its answer is shorter.
  if (n < static_cast<long>(GPUROTA_LEASE_LEAST)) return false;
  const size_t said =
      static_cast<size_t>(n) < sizeof(*answer) ? static_cast<size_t>(n) : sizeof(*answer);
  *answer = {};
  memcpy(answer, buffer, said);
  answer->why[sizeof(answer->why) - 1] = 0;
  return answer->header.type == GPUROTA_MSG_LEASE && answer->header.seq == question.header.seq &&
         memchr(answer->visible, 0, sizeof(answer->visible)) != nullptr;
}

bool ask_patiently(gpurota_msg_lease* answer) {
  const int64_t deadline = now_ms() + config().wait_ms;
  while (!ask(answer)) {
    if (now_ms() >= deadline) return false;
    sleep_ms(kRetryMs);
  }
  return true;
}

bool take_answer(const gpurota_msg_lease& answer) {
  if (answer.status != GPUROTA_OK && answer.status != GPUROTA_UNMANAGED) {
    GPUROTA_DEBUG("no lease for this program (status %u): it has no GPU", answer.status);
    if (config().lease == 0 && config().token[0] != '\0') {
      notice_once(Notice::kLeaseOver,
                  "the lease of this container is over, so it has no GPU: delete its pod");
    } else if (config().lease != 0) {
      notice_once(Notice::kLeaseOver,
                  "lease L%llu is over, or another user's, so this container has no GPU",
                  static_cast<unsigned long long>(config().lease));
    } else if (answer.why[0] != '\0') {
      notice_once(Notice::kNoLease, "no lease, so this program has no GPU: %s", answer.why);
    }
    return false;
  }
  if (answer.visible[0] != '\0' && !show_only(answer.visible)) return false;
  if (answer.status == GPUROTA_UNMANAGED) {
    GPUROTA_DEBUG("this program needs no limit%s", "");
    go_without_lease();
    return true;
  }
  take_lease(answer.lease, answer.token);
  GPUROTA_DEBUG("got lease L%llu on GPU %s", static_cast<unsigned long long>(answer.lease),
                answer.visible);
  return true;
}

}  // namespace

bool can_hold() {
  static std::atomic<int> known{0};  // 1: it can, 2: it cannot
  if (known.load(std::memory_order_relaxed) == 0) {
    known.store(find_libc_symbol("gnu_get_libc_version") != nullptr ? 1 : 2);
  }
  return known.load(std::memory_order_relaxed) == 1;
}

// A refused program may ask again by another cuInit.
bool may_initialise() {
  if (!lease_pending() || wants_none()) return true;
  ErrnoGuard guard;
  Lock lock(state().link.mutex);
  if (!lease_pending()) return true;
  gpurota_msg_lease answer;
  if (ask_patiently(&answer)) return take_answer(answer);
  GPUROTA_DEBUG("no daemon answers at %s: this program has no GPU", config().socket_path);
  if (config().for_container) {
    notice_once(Notice::kNoLease, "no daemon answers at %s, so this container has no GPU",
                config().socket_path);
  }
  return false;
}

}  // namespace gpurota::interposer

CUresult cuInit(unsigned int flags) {
  using namespace gpurota::interposer;
  // Where no limit can be enforced, the program gets no GPU.
  if (active() && !can_hold()) {
    notice_once(Notice::kNoLease,
                "the C library of this program is not glibc, so no limit can be held: it has no "
                "GPU");
    return CUDA_ERROR_NO_DEVICE;
  }
  GPUROTA_ENTER(cuInit, flags);
  if (!may_initialise()) return CUDA_ERROR_NO_DEVICE;
  return real(flags);
}
