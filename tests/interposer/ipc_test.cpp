// Memory that two processes of a lease share by handle: who is charged for it, and until when.
#include "fixture.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>

namespace gpurota::interposer_test {
namespace {

class SharedMemory : public InterposerTest {
 protected:
  std::unique_ptr<Program> start_process() {
    auto program = std::make_unique<Program>(
        std::vector<std::string>{foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE,
                                 "--", foreign(PROBE_IPC)},
        lease());
    EXPECT_EQ(program->read_line(), "ready");
    return program;
  }
  static std::string ask(Program& program, const std::string& line) {
    program.write_line(line);
    return program.read_line();
  }
  // Of 96 MiB in which all words are 7.
  static std::string give_handle(Program& owner) {
    EXPECT_EQ(ask(owner, "alloc 96"), "CUDA_SUCCESS");
    EXPECT_EQ(ask(owner, "set 7"), "CUDA_SUCCESS");
    const std::string said = ask(owner, "handle");
    EXPECT_EQ(said.substr(0, 13), "CUDA_SUCCESS ");
    return said.size() > 13 ? said.substr(13) : "";
  }
  void wait_for_tenants(int count) {
    for (int i = 0; daemon_->tenants() != count && i < 2000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(daemon_->tenants(), count);
  }
};

TEST_F(SharedMemory, TheOwnerPaysUntilItFreesIt) {
  const auto owner = start_process();
  const auto other = start_process();
  const std::string handle = give_handle(*owner);
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "charged"), "96");
  EXPECT_EQ(ask(*other, "check 7"), "same");
  EXPECT_EQ(ask(*other, "set 8"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "check 8"), "same");
  EXPECT_EQ(ask(*other, "close"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "charged"), "96");
  EXPECT_EQ(ask(*owner, "free"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "charged"), "0");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

// What the driver still shows for it then is the daemon's to charge, by NVML.
TEST_F(SharedMemory, OfAnOwnerThatIsKilledWhileItIsOpenElsewhereNothingStaysCharged) {
  const auto owner = start_process();
  const auto other = start_process();
  const std::string handle = give_handle(*owner);
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_SUCCESS");
  owner->signal(SIGKILL);
  owner->wait();
  wait_for_tenants(1);
  EXPECT_EQ(ask(*other, "charged"), "0");
  EXPECT_EQ(ask(*other, "check 7"),
            "same");  // the simulator's memory lives as long as anybody has it
  EXPECT_EQ(ask(*other, "close"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "charged"), "0") << "it was credited to who never paid for it";
  EXPECT_NE(ask(*other, "open " + handle), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "alloc 260"), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(ask(*other, "alloc 256"), "CUDA_SUCCESS");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
