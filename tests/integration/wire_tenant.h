// A hand-written tenant: sends the messages of libgpurota one at a time, and messages that
// libgpurota never sends.
#pragma once

#include "abi/page.h"
#include "abi/wire.h"
#include "base/fd.h"
#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::testing {

class WireTenant {
 public:
  explicit WireTenant(const std::string& socket);
  ~WireTenant();
  WireTenant(const WireTenant&) = delete;
  WireTenant& operator=(const WireTenant&) = delete;

  // Returns the status of the answer; with GPUROTA_OK, sets the page and the event socket.
  std::optional<std::uint32_t> hello(std::uint64_t lease, const std::string& token = "",
                                     const std::vector<gpurota_held>& held = {},
                                     std::uint32_t version = GPUROTA_WIRE_VERSION);
  // Sends a request for a lease instead of hello. With `lease`, claims to be in that lease.
  std::optional<gpurota_msg_lease> ask_for_lease(std::uint64_t lease = 0,
                                                 const std::string& token = "");
  // Blocks until the answer.
  std::optional<gpurota_msg_grown> grow(std::uint32_t slot, std::uint64_t need,
                                        std::uint64_t want = 0, std::uint64_t returned = 0);
  std::optional<gpurota_msg_grown> grow_context(std::uint32_t slot);
  std::optional<gpurota_msg_info> contexts(std::uint32_t slot, std::uint32_t count);
  std::optional<gpurota_msg_info> query(std::uint32_t slot);
  void give_back(std::uint32_t slot, std::uint64_t bytes);
  // The next recall on the event socket; nullopt if none comes within a second.
  std::optional<gpurota_msg_recall> next_recall();
  void answer_recall(const gpurota_msg_recall& recall, std::uint64_t bytes);

  void send_raw(const std::vector<std::uint8_t>& packet);
  // Read the answers to raw messages.
  std::optional<std::uint32_t> take_welcome();
  std::optional<gpurota_msg_grown> take_grown();
  std::optional<gpurota_msg_info> take_info();
  // From the answer to a PROCESSES: the number of processes in the lease.
  std::optional<std::uint32_t> take_members();
  // Whether the daemon has closed the connection, or does so within two seconds.
  bool hung_up();
  gpurota_page* page() { return page_; }
  std::uint32_t last_grown() const { return last_grown_; }

 private:
  template <class Message>
  void send(int fd, gpurota_msg_type type, Message message, std::uint32_t seq);
  template <class Answer>
  std::optional<Answer> receive(int fd, gpurota_msg_type type, int timeout_ms);

  Fd call_;
  Fd event_;
  gpurota_page* page_ = nullptr;
  std::uint32_t seq_ = 0;
  std::uint32_t last_grown_ = 0;
};

}  // namespace gpurota::testing
