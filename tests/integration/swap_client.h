// A hand-written tenant of a swap lease: sends libgpurota's messages of abi/wire_swap.h, without a
// GPU. A thread of the client answers orders as the library's helper does; memory is only numbers.
#pragma once

#include "abi/page.h"
#include "abi/wire.h"
#include "base/bytes.h"
#include "base/fd.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gpurota::testing {

class SwapClient {
 public:
  // The client's figures in SWAP_HERE, for one GPU.
  struct Has {
    Bytes movable, resident, wired;
    bool gate_open = false;
  };

  explicit SwapClient(const std::string& socket);
  ~SwapClient();
  SwapClient(const SwapClient&) = delete;
  SwapClient& operator=(const SwapClient&) = delete;

  // Returns the status of the WELCOME.
  std::optional<std::uint32_t> hello(std::uint64_t lease,
                                     std::uint64_t features = GPUROTA_FEATURE_SWAP);
  std::uint64_t features() const { return features_; }
  // From now on HELLO reports this memory and these contexts on the first GPU.
  void set_held(Bytes granted, std::uint32_t contexts);
  void here(const Has& has);
  void here() { here(Has()); }
  // Calls hello and here.
  bool join(std::uint64_t lease);
  bool join(std::uint64_t lease, const Has& has);
  // Blocks until the answer; returns its status. nullopt if there is none within some seconds.
  std::optional<std::uint32_t> grow(Bytes bytes, std::uint32_t kind = GPUROTA_SWAP_MOVABLE);
  // Like grow, without waiting; answered(seq) has the answer.
  std::uint32_t ask(Bytes bytes, std::uint32_t kind = GPUROTA_SWAP_MOVABLE);
  std::optional<gpurota_msg_swap_grown> answered(std::uint32_t seq);
  std::optional<gpurota_msg_info> contexts(std::uint32_t count);
  std::optional<gpurota_msg_info> query();
  void set_busy(bool busy);
  // From now on the client accepts orders to move or to drain, and does not carry them out.
  void set_lazy(bool lazy);
  // From now on the client evicts whole blocks of this size, as the library does, and reports each.
  void set_block(Bytes block);
  // From now on the client does not evict, because it has an RDMA device open, and reports that.
  void set_rdma(bool rdma);
  // The result of opening another tenant's memory: the answer, and the socket sent with it. Blocks.
  struct Opened {
    std::uint32_t status = 0;
    Fd socket;
  };
  std::optional<Opened> open(const gpurota_shared_name& name);
  void ask_to_open(const gpurota_shared_name& name);
  // From SWAP_HERE on, other tenants may open the client's memory with this key. The client answers
  // a question by writing the question's `name.address` into the socket that came with the
  // question.
  void set_key(std::uint64_t key);
  // Acts as if the connection had broken.
  void disconnect();

  bool gate_open();
  int turns();  // how many times its gate was opened
  int pages();  // how many pages it was given to mark its bursts of work (MARK)
  Bytes resident();
  Bytes out();
  std::optional<gpurota_msg_swap_terms> terms();
  Has has();

  // Messages that the library never sends.
  void send_status(std::uint32_t gate_seq);
  // Sends a descriptor with the message, which tenants never do.
  void send_status(std::uint32_t gate_seq, int descriptor);
  void send_moved(std::uint32_t direction, Bytes bytes, Bytes returned);
  void send_shrink(Bytes resident, Bytes out, Bytes wired);
  bool hung_up();
  gpurota_page* page() { return page_; }

 private:
  template <class Message>
  void say(int type, Message message, std::uint32_t seq = 0, std::span<const int> fds = {});
  void run();
  void take(const std::byte* packet, std::size_t size, const std::vector<Fd>& fds);
  void gate(const gpurota_msg_swap_gate& order);
  void move(const gpurota_msg_swap_move& order);
  void tell_status();
  template <class Answer>
  std::optional<Answer> call(int type, gpurota_msg_contexts question);

  Fd call_;
  Fd event_;
  Fd wake_;
  gpurota_page* page_ = nullptr;
  std::uint64_t features_ = 0;
  std::uint32_t call_seq_ = 0;
  std::optional<gpurota_held> held_;
  std::thread thread_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable news_;
  std::uint32_t seq_ = 0, gate_seq_ = 0;
  std::map<std::uint32_t, std::optional<gpurota_msg_swap_grown>> answers_;
  std::map<std::uint32_t, std::pair<std::uint32_t, Bytes>> asked_;
  std::optional<gpurota_msg_swap_terms> terms_;
  Has has_;
  Bytes block_;
  std::uint64_t key_ = 0;
  bool busy_ = false, lazy_ = false, rdma_ = false, open_ = false, gone_ = false;
  int turns_ = 0;
  int pages_ = 0;
};

}  // namespace gpurota::testing
