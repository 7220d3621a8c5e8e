// NVML inside a lease shows only the slice's memory and the lease's processes, whichever interface
// the program uses, and whether or not it uses CUDA.
#include "fixture.h"

#include <map>
#include <set>
#include <sstream>

namespace gpurota::interposer_test {
namespace {

struct Shown {
  std::map<std::string, std::vector<std::uint64_t>> memory;  // by "GPU VERSION": total free used
  std::map<std::string, std::vector<std::uint64_t>> pids;    // by "GPU KIND VERSION"
  std::vector<std::uint64_t> cuda;                           // total free
};

std::vector<std::uint64_t> numbers(std::istringstream& in) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t n = 0; in >> n;) found.push_back(n);
  return found;
}

Shown read_shown(Program& program) {
  Shown shown;
  for (std::string line; !(line = program.read_line()).empty() && line != "end";) {
    std::istringstream in(line);
    std::string what, gpu, kind, version;
    in >> what;
    if (what == "cuda") shown.cuda = numbers(in);
    if (what == "memory" && in >> gpu >> version) shown.memory[gpu + " " + version] = numbers(in);
    if (what == "processes" && in >> gpu >> kind >> version) {
      shown.pids[gpu + " " + kind + " " + version] = numbers(in);
    }
  }
  return shown;
}

class NvmlTest : public InterposerTest {
 protected:
  std::unique_ptr<Program> show(std::vector<std::string> words,
                                const std::map<std::string, std::string>& extra) {
    std::vector<std::string> argv = {foreign(PROBE_SIM), "--dir", dir_.file("machine"),
                                     PROBE_MACHINE,      "--",    foreign(PROBE_NVML)};
    argv.insert(argv.end(), words.begin(), words.end());
    return std::make_unique<Program>(argv, extra);
  }
  std::unique_ptr<Program> outsider() {
    auto program = start(PROBE_DYNAMIC, "step", {});
    EXPECT_EQ(program->read_line(), "ready");
    return program;
  }
};

class EachNvmlLookup : public NvmlTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EachNvmlLookup, ShowsTheSliceToAProgramThatNeverUsesCuda) {
  const auto other = outsider();
  const auto program = show({GetParam()}, lease());
  const Shown shown = read_shown(*program);
  EXPECT_EQ(program->wait(), 0);
  const std::vector<std::uint64_t> slice = {256 * kMiB, 256 * kMiB, 0};
  EXPECT_EQ(shown.memory.at("0 1"), slice);
  EXPECT_EQ(shown.memory.at("0 2"), slice);
  for (const auto& [list, pids] : shown.pids) EXPECT_TRUE(pids.empty()) << list;
  EXPECT_EQ(shown.pids.size(), 20u);
  EXPECT_EQ(daemon_->bad_messages(), 0);
  EXPECT_EQ(daemon_->grows(), 0);
}

INSTANTIATE_TEST_SUITE_P(Nvml, EachNvmlLookup,
                         ::testing::Values("linked", "handle", "default", "next"),
                         [](const auto& each) { return std::string(each.param); });

TEST_F(NvmlTest, FreeMemoryAgreesWithCuda) {
  const auto program = show({"handle", "cuda"}, lease());
  const Shown shown = read_shown(*program);
  ASSERT_EQ(shown.cuda.size(), 2u);
  EXPECT_EQ(shown.cuda[0], 256 * kMiB);
  EXPECT_EQ(shown.cuda[1], 192 * kMiB);
  const std::vector<std::uint64_t> expected = {shown.cuda[0], shown.cuda[1],
                                               shown.cuda[0] - shown.cuda[1]};
  EXPECT_EQ(shown.memory.at("0 1"), expected);
  EXPECT_EQ(shown.memory.at("0 2"), expected);
}

TEST_F(NvmlTest, ListsTheProcessesOfTheLeaseAndNoOthers) {
  const auto other = outsider();
  const auto first = show({"handle", "cuda"}, lease());
  read_shown(*first);
  const auto second = show({"handle", "cuda"}, lease());
  const Shown shown = read_shown(*second);
  for (const char* list : {"0 Compute 1", "0 Compute 2", "0 Compute 3", "0 Detail 1"}) {
    const std::vector<std::uint64_t> pids = shown.pids.at(list);
    EXPECT_EQ(std::set<std::uint64_t>(pids.begin(), pids.end()),
              (std::set<std::uint64_t>{static_cast<std::uint64_t>(first->pid()),
                                       static_cast<std::uint64_t>(second->pid())}))
        << list;
  }
  EXPECT_TRUE(shown.pids.at("0 Graphics 3").empty());
}

TEST_F(NvmlTest, TellsTheTruthAboutGpusThatAreNotOfTheLease) {
  // The lease has only the second GPU, so NVML shows the first one as without a lease.
  const auto other = outsider();
  daemon_.reset();
  daemon_ =
      std::make_unique<FakeDaemon>(socket_path(), std::vector<FakeGpu>{{uuids_[1], 256 * kMiB}}, 0);
  const auto program = show({"handle"}, lease());
  const Shown shown = read_shown(*program);
  const Shown bare = read_shown(*show({"handle"}, {}));
  EXPECT_EQ(shown.memory.at("0 1"), bare.memory.at("0 1"));
  EXPECT_GT(shown.memory.at("0 1")[0], 4096 * kMiB);
  EXPECT_EQ(shown.pids.at("0 Compute 3"),
            (std::vector<std::uint64_t>{static_cast<std::uint64_t>(other->pid())}));
  EXPECT_EQ(shown.memory.at("1 1")[0], 256 * kMiB);
}

TEST_F(NvmlTest, OtherProcessesMemoryIsUsedMemory) {
  const auto holder = show({"handle", "cuda"}, lease());
  read_shown(*holder);
  const auto program = show({"handle"}, lease());
  const Shown shown = read_shown(*program);
  // The holder's 64 MiB are used. Its headroom counts as free, because the daemon would recall it.
  const auto& memory = shown.memory.at("0 2");
  EXPECT_EQ(memory[0], 256 * kMiB);
  EXPECT_EQ(memory[1] + memory[2], memory[0]);
  EXPECT_GE(memory[2], 64 * kMiB);
}

TEST_F(NvmlTest, WithoutADaemonItAnswersAtOnceAndTruly) {
  daemon_.reset();
  auto extra = lease();
  extra["GPUROTA_WAIT_MS"] = "600000";
  const auto program = show({"handle"}, extra);
  const Shown shown = read_shown(*program);
  EXPECT_EQ(program->wait(), 0);
  EXPECT_EQ(shown.memory.at("0 1"), read_shown(*show({"handle"}, {})).memory.at("0 1"));
}

TEST_F(NvmlTest, ProcessSeesItselfIfTheDaemonCannotListProcesses) {
  daemon_->misbehave(Mischief::kOldDaemon);
  const auto other = outsider();
  const auto program = show({"handle", "cuda"}, lease());
  const Shown shown = read_shown(*program);
  EXPECT_EQ(shown.pids.at("0 Compute 3"),
            (std::vector<std::uint64_t>{static_cast<std::uint64_t>(program->pid())}));
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(NvmlTest, WithoutALeaseEverythingIsNvmls) {
  const auto other = outsider();
  auto extra = lease();
  extra["GPUROTA_LEASE"] = "";
  extra["GPUROTA_SOCKET"] = "";
  const Shown shown = read_shown(*show({"linked"}, extra));
  EXPECT_GT(shown.memory.at("0 2")[0], 4096 * kMiB);
  EXPECT_EQ(shown.pids.at("0 Compute 1").size(), 1u);
  EXPECT_TRUE(daemon_->hellos().empty());
}

}  // namespace
}  // namespace gpurota::interposer_test
