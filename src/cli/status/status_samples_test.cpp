#include "cli/status/status_samples_test.h"

#include <algorithm>

namespace gpurota::cli::samples {
namespace {

using namespace std::chrono_literals;
using proto::FindingKind;
using proto::GpuState;

Sample idle() {
  Machine machine(1);
  machine.gpu(0).idle_since = kNow - 3h;
  return {"one", machine.reply};
}

Sample alone() {
  Machine machine(1);
  proto::Lease& lease = machine.lend(7, "alice", {0}, 125min, 41.2);
  lease.command = {{"python", "train.py", "--epochs", "90"}};
  return {"one-in-use", machine.reply};
}

Sample mixed() {
  Machine machine(8);
  proto::Lease& idle = machine.lend(10, "gu_alice", {0}, 10min, 0, 10);
  idle.ends = kNow + 79min;
  idle.kind = proto::LeaseKind::kReservation;
  machine.lend(14, "gu_carol", {1}, 30min, 0).note = "paper: ablation 3";
  machine
      .find(FindingKind::kForeignUse, 1, "gu_bob", 12.5,
            {{28919, in_gib(12.5), {{"/usr/bin/python3", "sweep.py"}}}})
      .lease_id = LeaseId{14};
  machine.gpu(2).idle_since = kNow - 3h;
  machine.lend(15, "gu_dave", {3}, 26h, 2.6, 3).command = {{"./serve", "hold", "2500"}};
  machine.lend(16, "gu_erin", {3}, 0min, 0.2, 2).note = "until 18:00";
  machine.lend(17, "gu_carol", {4, 5}, 5h + 3min, 71.3).command = {
      {"torchrun", "--nproc-per-node", "2", "train.py"}};
  machine.gpu(6).state = GpuState::kHeld;
  machine.gpu(6).held_for = RequestId{7};
  machine.gpu(6).idle_since = kNow - 20s;
  machine.gpu(7).state = GpuState::kUnreservedUse;
  machine.gpu(7).used_bytes = machine.gpu(7).unreserved_bytes = in_gib(30);
  machine.find(FindingKind::kUnreservedUse, 7, "gu_frank", 30,
               {{4711, in_gib(20), {{"jupyter-lab"}}}, {4712, in_gib(10), {}}});
  machine.reply.waiting = 2;
  return {"eight", machine.reply};
}

// The machine of README's pictures, which tests/web/pictures.mjs draws, too. Readers may take it
// for a real one, so it must be plausible.
Sample server() {
  Machine machine(8, "NVIDIA H100 80GB HBM3", 80);
  proto::Lease& serve = machine.lend(11, "ann", {0}, 76min, 18, 20);
  serve.ends = kNow + 79min;
  serve.command = {{"python", "serve.py"}};
  machine.lend(12, "bob", {0}, 20min, 10, 12).command = {{"jupyter-lab"}};
  machine.gpu(0).utilisation_percent = 41;
  machine.lend_in_turns(18, "eve", 1, "holding", 0, 60, 0).command = {{"python", "train.py"}};
  machine.lend_in_turns(19, "dave", 1, "waiting", 1, 4, 48).command = {{"python", "finetune.py"}};
  machine.lend(21, "erin", {2, 3}, 5h + 3min, 71).command = {
      {"torchrun", "--nproc-per-node", "2", "train.py"}};
  machine.gpu(4).state = GpuState::kHeld;
  machine.gpu(4).held_for = RequestId{7};
  machine.gpu(4).idle_since = kNow - 12min;
  machine.gpu(5).state = GpuState::kUnreservedUse;
  machine.gpu(5).used_bytes = machine.gpu(5).unreserved_bytes = in_gib(30);
  machine.gpu(5).utilisation_percent = 12;
  machine.find(FindingKind::kUnreservedUse, 5, "max", 30,
               {{4711, in_gib(30), {{"python", "notebook.py"}}}});
  machine.gpu(6).state = GpuState::kDraining;
  machine.gpu(6).detail = "new fan on Friday";
  machine.gpu(7).idle_since = kNow - 3h;
  machine.reply.waiting = 1;
  return {"server", machine.reply};
}

Sample many() {
  Machine machine(16, "NVIDIA H200", 139.8);
  for (int i = 0; i < 16; ++i) machine.gpu(i).idle_since = kNow - std::chrono::minutes(7 * i + 1);
  machine.lend(101, "ml-team", {0, 1, 2, 3, 4, 5, 6, 7}, 50h, 128.4).command = {
      {"python", "-m", "torch.distributed.run", "pretrain.py", "--config", "70b.yaml"}};
  machine.lend(102, "alice", {8}, 2h, 23.9, 24).note = "eval";
  machine.lend(103, "bob", {8}, 3h, 60, 64).latency = proto::LatencyClass::kInteractive;
  machine.lend(104, "carol", {9}, 4min, 3).kind = proto::LeaseKind::kJob;
  proto::Lease& filler = machine.lend(105, "fold", {10}, 11h, 120);
  filler.kind = proto::LeaseKind::kFiller;
  machine.gpu(10).state = GpuState::kAvailable;
  machine.reply.waiting = 1;
  return {"sixteen", machine.reply};
}

Sample trouble() {
  Machine machine(7);
  machine.add_gpu("NVIDIA A100-SXM4-40GB", 39.4);
  machine.gpu(0).state = GpuState::kError;
  machine.gpu(0).detail = "GPU is lost: the driver answers with error 15 (fell off the bus)";
  machine.lend(20, "alice", {1}, 3h, 10);
  machine.gpu(1).state = GpuState::kDraining;
  machine.gpu(1).detail = "new fan on Friday";
  proto::Lease& expired = machine.lend(21, "bob", {2}, 4h, 33);
  expired.kind = proto::LeaseKind::kReservation;
  expired.state = proto::LeaseState::kExpired;
  expired.ends = kNow - 25min;
  machine.lend(22, "carol", {3}, 1h, 8.02, 8).ends = kNow + 3h + 5min;
  machine.find(FindingKind::kOverLimit, 3, "carol", 8.02).lease_id = LeaseId{22};
  machine.lend(23, "dave", {4}, 1h, 4, 8);
  machine.find(FindingKind::kNotLimited, 4, "dave", 4).lease_id = LeaseId{23};
  proto::Lease& unused = machine.lend(24, "erin", {5}, 9h, 0);
  unused.gpus[0].unused_since = kNow - 8h;
  unused.ends = kNow + 15h;
  proto::Lease& soft = machine.lend(25, "frank", {6}, 3h, 2.04, 8);
  soft.gpus[0].soft_limit_bytes = gib(2);
  machine.lend(26, "grace", {7}, 3h, 5).state = proto::LeaseState::kEnding;
  machine.lend(27, "heidi", {7}, 1min, 0);
  machine.lease(27).gpus[0].uuid = {"GPU-4fd1c1e2-9d06-4c1c-8a5b-0de7b0e2a771"};
  machine.lease(27).gpus[0].index = -1;
  machine.lease(27).gpus[0].label = "lost";
  machine.lease(27).ends = kNow + 29min;
  return {"trouble", machine.reply};
}

Sample turns() {
  Machine machine(2);
  machine.lend_in_turns(3, "bob", 0, "waiting", 1, 0.3, 63.5).note = "night run";
  machine.lend_in_turns(4, "carol", 0, "holding", 0, 68.9, 0).command = {{"python", "train.py"}};
  machine.lend_in_turns(5, "dave", 0, "waiting", 2, 0.3, 12).ends = kNow + 40min;
  machine.lend_in_turns(6, "erin", 0, "waiting", 0, 2.1, 0);
  machine.lend_in_turns(8, "frank", 1, "", 0, 12, 0).gpus[0].turn.reset();
  proto::Lease& oversize = machine.lend_in_turns(9, "grace", 1, "", 0, 50, 0);
  oversize.gpus[0].turn.reset();
  oversize.gpus[0].limit_bytes = in_gib(120);
  oversize.gpus[0].oversize_bytes = in_gib(50);
  return {"turns", machine.reply};
}

Sample mig() {
  Machine machine(2);
  machine.gpu(0).state = GpuState::kSplit;
  machine.gpu(0).detail = "split into MIG instances; leases use those instead";
  machine.gpu(0).utilisation_percent.reset();
  machine.gpu(1).idle_since = kNow - 12min;
  for (int i = 0; i < 3; ++i) {
    proto::Gpu& instance = machine.add_gpu("NVIDIA H100 80GB HBM3 MIG 2g.20gb", 19.6);
    instance.index = i;
    instance.label = "0:" + std::to_string(i);
    instance.parent = machine.gpu(0).uuid;
    instance.utilisation_percent.reset();
  }
  machine.lend(31, "alice", {2}, 3h, 11.8);
  machine.lend(32, "bob", {3}, 20min, 3.9, 4);
  machine.reply.leases[0].gpus[0].label = "0:0";
  for (int i = 2; i < 5; ++i) machine.gpu(i).utilisation_percent.reset();
  std::rotate(machine.reply.gpus.begin() + 1, machine.reply.gpus.begin() + 2,
              machine.reply.gpus.end());
  return {"mig", machine.reply};
}

// Two leases whose programs are MPS clients. The MPS server belongs to another user and has no
// lease, so its memory is unreserved use.
Sample mps() {
  Machine machine(1);
  machine.lend(41, "alice", {0}, 3h, 9.1, 16).gpus[0].processes = 4;
  machine.lend(42, "bob", {0}, 2h, 5.5, 16).command = {{"./md", "-np", "2"}};
  machine.gpu(0).state = GpuState::kUnreservedUse;
  machine.gpu(0).unreserved_bytes = in_gib(1.6);
  machine.find(FindingKind::kUnreservedUse, 0, "nvidia-persistence", 1.6,
               {{812, in_gib(1.6), {{"/usr/bin/nvidia-cuda-mps-server"}}}});
  return {"mps", machine.reply};
}

Sample long_names() {
  Machine machine(3, "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 95.6);
  proto::Lease& lease = machine.lend(123456, "firstname.lastname-of-the-group", {0}, 49h, 80.25);
  lease.as_name = "somebody with a rather long name on a shared account";
  lease.ends = kNow + 71h;
  lease.note = std::string(200, 'n');
  lease.model = "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8";
  lease.command = {{"/opt/conda/envs/a-long-environment/bin/python", std::string(300, 'c')}};
  machine.find(FindingKind::kUnreservedUse, 1, "svc-continuous-integration", 3,
               {{4194304, in_gib(3), {{"/very/long/path/to/" + std::string(120, 'p')}}}});
  machine.gpu(1).state = GpuState::kUnreservedUse;
  machine.gpu(2).state = GpuState::kError;
  machine.gpu(2).detail = std::string(300, 'e');
  return {"long-names", machine.reply};
}

Sample wide_text() {
  Machine machine(3);
  machine.lend(51, "王小明", {0}, 90min, 40).note = "今晚的訓練,請勿打擾,謝謝大家的配合與支持";
  proto::Lease& lease = machine.lend(52, "ünal", {1}, 90min, 12, 16);
  lease.note = "🚀🚀 große Läufe 👩‍🔬 e\xcc\x81tude";
  lease.as_name = "山田さん";
  lease.ends = kNow + 5min;
  machine.gpu(2).name = "世界 GPU";
  return {"wide-text", machine.reply};
}

// Sets the available memory of each GPU as the daemon does: the GPU's memory minus the slices and
// whole-GPU leases, the unreserved use, and the largest lease that takes turns (without its
// oversize part).
void set_available(proto::Status::Reply& reply) {
  for (proto::Gpu& gpu : reply.gpus) {
    Bytes largest;
    for (const proto::Lease& lease : reply.leases) {
      if (lease.share != proto::Share::kSwap) continue;
      for (const proto::LeaseGpu& share : lease.gpus) {
        const Bytes in_turn = *share.limit_bytes - share.oversize_bytes.value_or(Bytes());
        if (share.uuid == gpu.uuid) largest = std::max(largest, in_turn);
      }
    }
    gpu.available_bytes = gpu.memory_bytes - gpu.reserved_bytes - gpu.unreserved_bytes - largest;
  }
}

}  // namespace

std::vector<Sample> all() {
  std::vector<Sample> samples = {idle(),  alone(), mixed(), server(),     many(),     trouble(),
                                 turns(), mig(),   mps(),   long_names(), wide_text()};
  for (Sample& sample : samples) set_available(sample.reply);
  return samples;
}

}  // namespace gpurota::cli::samples
